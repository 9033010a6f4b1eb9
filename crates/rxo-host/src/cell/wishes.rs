//! Settings of a connection that an application changes while it lasts.
//!
//! Separate because their times begin when they take effect, and only the worker knows the time: an application
//! leaves them with the cell.

use rxo_frame::{Duration, Instant};
use rxo_tcp::{Connection, KeepAlive};

use super::Inner;
use crate::buffer::Buffer;

/// What is to change; `None` stays as it is.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    /// Keep-alive, or none.
    pub(super) keep_alive: Option<Option<KeepAlive>>,
    pub(super) user_timeout: Option<Duration>,
}

impl Wishes {
    fn apply<B: AsRef<[u8]>>(self, connection: &mut Connection<Buffer<B>>, now: Instant) {
        if let Some(settings) = self.keep_alive {
            // The settings were checked when they were made.
            let _ = connection.set_keep_alive(now, settings);
        }
        if let Some(timeout) = self.user_timeout {
            connection.set_user_timeout(now, timeout);
        }
    }
}

impl<B: AsRef<[u8]>> Inner<B> {
    /// What the application wishes. The worker is to serve the cell.
    pub(super) fn wish(&mut self) -> &mut Wishes {
        self.has_work = true;
        self.wishes.get_or_insert_default()
    }

    /// Applies what the application has changed, which is rare: each time that a connection is served this is asked.
    #[inline]
    pub(super) fn apply_wishes(&mut self, now: Instant) {
        if self.wishes.is_some() {
            self.apply_them(now);
        }
    }

    #[cold]
    fn apply_them(&mut self, now: Instant) {
        if let Some(wishes) = self.wishes.take() {
            wishes.apply(&mut self.connection, now);
        }
    }
}
