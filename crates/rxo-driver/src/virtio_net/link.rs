//! Traits for a source and a sink over rings: a [`Side`] is a device that may lose its other side, and a
//! [`Link`] is the connected other side.

use std::fmt::Debug;
use std::sync::Arc;

use rxo_frame::{Instant, Load};

use super::{Accepts, Buffers, Events, Notices, PacketRing};

/// The result of checking the sockets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attended {
    /// `true` if the rings have changed.
    pub(crate) has_changed: bool,
    /// `true` if a notification was consumed, so that frames may be waiting for which no other notification
    /// comes.
    pub(crate) is_notified: bool,
}

/// The device side or the driver side of a device. The source and the sink share it.
pub(crate) trait Side: Debug + Send {
    /// The type of the other side while it is connected: the rings that it shares.
    type Link: Link;

    /// Returns the events for which the side waits.
    fn events(&self) -> Arc<Events>;

    /// Checks the sockets, and consumes notifications.
    fn attend(&mut self) -> Attended;

    /// Returns the rings of the other side if they can be used; otherwise `None`.
    fn link(&mut self) -> Option<&mut Self::Link>;

    /// Returns the time of the next timed action, which no event triggers: a connection attempt, or a delayed
    /// notification. `None` if none is pending.
    fn next_check(&self) -> Option<Instant> {
        None
    }

    /// Returns `true` if the other side sends no notifications for its frames, so the rings must be polled.
    fn is_polled(&self) -> bool {
        false
    }

    /// Returns the number of times that the other side has disconnected.
    fn gone(&self) -> u64 {
        0
    }

    /// Returns the number of times that the other side has violated the rules of the rings.
    fn invalid(&self) -> u64;

    /// Returns the notices that were not shown to the user yet.
    fn notices(&mut self) -> &mut Notices;
}

/// The rings of a connected other side.
pub(crate) trait Link: PacketRing {
    /// Returns the kinds of packets that the other side accepts.
    fn accepts(&self) -> Accepts;

    /// Returns the kinds of packets that the other side is allowed to send.
    fn gives(&self) -> Accepts;

    /// Returns the length of the header before each frame, in bytes.
    fn header_bytes(&self) -> usize;

    /// Copies the other side's next frame into the next one of `buffers`.
    fn take(&mut self, buffers: &mut Buffers) -> RingRead;

    /// Returns the ring buffers of copied frames to the other side, and notifies it if it has requested a
    /// notification.
    fn finish_taking(&mut self);

    /// Requests a notification for the next frame. Returns `true` if a frame is already waiting.
    fn ask_for_notifications(&mut self) -> bool;

    /// Publishes written packets and segments, and notifies the other side if that is due. Returns the number
    /// of notifications since the last call.
    fn finish_putting(&mut self) -> u64;

    /// Sends a delayed notification to the other side if it is due.
    fn notify_when_due(&mut self) {}

    /// Returns the packets that the other side has not yet read; `None` if unknown.
    fn load(&mut self) -> Option<Load> {
        None
    }
}

/// The outcome of reading from a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RingRead {
    /// A frame of this number of bytes was read, including the header before it. It is in the buffer
    /// [`Buffers::content`].
    Frame(usize),
    /// An invalid frame, which was discarded.
    Discarded,
    /// No frame is waiting, or no buffer is free.
    Nothing,
}
