//! What a source and a sink over rings need: a [`Side`], which is a device that may lose its other
//! side, and a [`Link`], which is the other side while it is there.

use std::fmt::Debug;
use std::rc::Rc;

use rxo_frame::{Instant, Load, PoolBuf};

use super::{Accepts, Buffers, Events, Notices, PacketRing};

/// What a look at the sockets has found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attended {
    /// Whether the rings have changed.
    pub(crate) has_changed: bool,
    /// Whether a notification was forgotten, so that frames may wait for which no other comes.
    pub(crate) is_notified: bool,
}

/// The device side or the driver side of a device. The source and the sink share it.
pub(crate) trait Side: Debug {
    /// The other side while it is there.
    type Link: Link;

    /// What to wait for.
    fn events(&self) -> Rc<Events>;

    /// Looks at the sockets, and forgets notifications.
    fn attend(&mut self) -> Attended;

    /// The other side, if its rings can be used.
    fn link(&mut self) -> Option<&mut Self::Link>;

    /// When to look again although nothing reports a change: for another side, or to notify this one; `None`
    /// if there is no need.
    fn next_look(&self) -> Option<Instant> {
        None
    }

    /// Whether the other side does not notify of its frames, so that they must be looked for.
    fn is_polled(&self) -> bool {
        false
    }

    /// How often other sides have broken a rule of the rings.
    fn invalid(&self) -> u64;

    /// Lines for the user.
    fn notices(&mut self) -> &mut Notices;
}

/// Rings in use.
pub(crate) trait Link: PacketRing {
    /// What the other side accepts.
    fn accepts(&self) -> Accepts;

    /// What may be in frames of the other side.
    fn gives(&self) -> Accepts;

    /// The length of the header before each frame, in bytes.
    fn header_bytes(&self) -> usize;

    /// Copies the next frame of the other side into one of `buffers`.
    fn take(&mut self, buffers: &mut Buffers) -> Given;

    /// Returns the buffers of the frames taken, and notifies the other side if it wants that.
    fn finish_taking(&mut self);

    /// Asks for a notification of the next frame. Returns whether one is there already.
    fn ask_for_notifications(&mut self) -> bool;

    /// Shows the other side the packets and segments that were put, and notifies it if that is due. Returns how
    /// often it was notified since the last call.
    fn finish_putting(&mut self) -> u64;

    /// Notifies the other side of earlier packets if that has been put off and is due.
    fn notify_when_due(&mut self) {}

    /// What the other side was given and has not taken; `None` if that cannot be known.
    fn load(&mut self) -> Option<Load> {
        None
    }
}

/// What a ring gives.
pub(crate) enum Given {
    /// A frame behind its header.
    Frame(PoolBuf),
    /// A frame was discarded.
    Discarded,
    /// There is none, or no memory for one.
    Nothing,
}
