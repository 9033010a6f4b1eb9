//! Queue: one ring of a guest, with the descriptors by which both sides notify each other.

use std::io;
use std::sync::Arc;

use rxo_frame::Instant;
use rxo_virtqueue::{Base, DeviceQueue, Layout, Memory, QueueConfig};

use crate::vhost_user::Ring;
use crate::vhost_user::features::{EVENT_IDX, INDIRECT_DESC, RING_PACKED};
use crate::virtio_net::{Events, Notifier, Token, Watched};

/// A queue of a guest that can be used, with its notifications in both directions.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) queue: DeviceQueue,
    pub(super) call: Option<Notifier>,
    /// The guest's notifications; `None` if the guest sends none.
    pub(super) kick: Option<Watched>,
    /// The instant since which the guest has posted too few buffers; `None` if it has posted enough. In this
    /// state, the guest was asked to send a notification when it posts more.
    pub(super) starved_since: Option<Instant>,
}

impl Queue {
    /// Creates the queue of `ring` as `features` demand. An error contains the reason why the ring cannot be
    /// used.
    pub(super) fn new(
        memory: &Memory,
        features: u64,
        ring: &Ring,
        events: &Arc<Events>,
    ) -> Result<Self, String> {
        let has = |bits| features & bits != 0;
        let addresses = ring.addresses.ok_or("it has no addresses")?;
        let guest_address = |user: u64| {
            memory.guest_address(user).ok_or_else(|| format!("{user:#x} is in no region of memory"))
        };
        let config = QueueConfig {
            layout: layout(features),
            size: ring.size,
            descriptors: guest_address(addresses.descriptors)?,
            driver: guest_address(addresses.driver)?,
            device: guest_address(addresses.device)?,
            event_index: has(EVENT_IDX),
            indirect: has(INDIRECT_DESC),
        };
        let queue = DeviceQueue::new(memory, &config, Base::Vring(ring.base));
        let queue = queue.map_err(|error| error.to_string())?;
        let watched = ring.kick().map(|kick| events.watch(kick, Token::Notification)).transpose();
        let call = ring.call().map(Notifier::to).transpose();
        let cannot = |error: io::Error| format!("its notifications cannot be used: {error}");
        let (call, kick) = (call.map_err(cannot)?, watched.map_err(cannot)?);
        Ok(Self { queue, call, kick, starved_since: None })
    }

    /// Publishes used buffers. Returns `true` if the guest was notified.
    pub(super) fn finish(&mut self) -> bool {
        self.queue.publish();
        self.notify()
    }

    /// Notifies the guest of published buffers. Returns `false` if the guest wants no notification.
    pub(super) fn notify(&mut self) -> bool {
        let Some(call) = &self.call else { return false };
        let wants = self.queue.needs_notify();
        if wants {
            call.notify();
        }
        wants
    }
}

/// Returns `true` if the memory contains all parts of a ring.
pub(super) fn is_in(memory: &Memory, ring: &Ring) -> bool {
    ring.addresses.is_some_and(|parts| {
        let parts = [parts.descriptors, parts.driver, parts.device];
        parts.into_iter().all(|at| memory.guest_address(at).is_some())
    })
}

/// Returns the layout of the rings that `features` demand.
pub(super) const fn layout(features: u64) -> Layout {
    if features & RING_PACKED != 0 { Layout::Packed } else { Layout::Split }
}
