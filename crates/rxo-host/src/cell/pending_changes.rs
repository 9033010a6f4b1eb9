//! Settings of a connection that an application changes while the connection is open.
//!
//! An application stores changes in the cell, and the worker applies them. The changes are not applied at once,
//! because the timers of these settings start when the settings take effect, and only the worker knows the
//! time.

use rxo_frame::{Duration, Instant};
use rxo_tcp::{Connection, KeepAlive};

use super::Inner;
use crate::buffer::Buffer;

/// Changes to the settings of a connection; `None` leaves a setting unchanged.
#[derive(Debug, Default)]
pub(super) struct PendingChanges {
    /// The new keep-alive settings; `Some(None)` turns keep-alive off.
    pub(super) keep_alive: Option<Option<KeepAlive>>,
    pub(super) user_timeout: Option<Duration>,
}

impl PendingChanges {
    fn apply<B: AsRef<[u8]>>(self, connection: &mut Connection<Buffer<B>>, now: Instant) {
        if let Some(settings) = self.keep_alive {
            // Cannot fail: the settings were checked when the application passed them.
            let _ = connection.set_keep_alive(now, settings);
        }
        if let Some(timeout) = self.user_timeout {
            connection.set_user_timeout(now, timeout);
        }
    }
}

impl<B: AsRef<[u8]>> Inner<B> {
    /// Returns the changes that the worker has not applied yet, so that the caller can add a change. Marks the
    /// cell as having work for the worker.
    pub(super) fn pending_changes(&mut self) -> &mut PendingChanges {
        self.has_work = true;
        self.pending_changes.get_or_insert_default()
    }

    /// Applies the changes that the application has requested. Called whenever the connection is served,
    /// usually without any changes to apply.
    #[inline]
    pub(super) fn apply_pending_changes(&mut self, now: Instant) {
        if self.pending_changes.is_some() {
            self.apply_them(now);
        }
    }

    #[cold]
    fn apply_them(&mut self, now: Instant) {
        if let Some(pending_changes) = self.pending_changes.take() {
            pending_changes.apply(&mut self.connection, now);
        }
    }
}
