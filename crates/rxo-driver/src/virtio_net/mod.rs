//! What both sides of a virtio network device do alike (virtio 1.2, section 5.1).
//!
//! * [`Accepts`]: which headers the receiving side accepts, by the features agreed on.
//! * [`Encoder`]: packets of a batch into a ring. What the other side does not accept it completes or
//!   segments, or refuses, so that the transmitter sends the original frames.
//! * [`Copying`]: by which path and in which layout packets are put, and the copies that took.
//! * [`Side`] and [`Link`]: a device and its other side; [`RingSource`] and [`RingPort`] are the ends
//!   of either.
//! * [`Buffers`]: the memory of received frames.
//! * [`queue_of`]: which of several queues a packet goes to.
//! * [`Events`]: what to wait for: the control socket and notifications.
//! * [`mapping`]: shared memory of this process.
//!
//! Separate from the devices because the device side (`vhost`) and the driver side (`virtio`) are the
//! same seen from two ends.

mod accepts;
mod buffers;
mod copying;
mod encoder;
mod events;
mod link;
mod lost;
pub(crate) mod mapping;
mod notices;
mod port;
#[cfg(test)]
pub(crate) mod samples;
mod source;
mod steering;

pub(crate) use accepts::{Accepts, header_bytes};
pub(crate) use buffers::Buffers;
pub(crate) use copying::Copying;
pub use copying::{CopyPath, FrameLayout};
pub(crate) use encoder::{Encoder, PacketRing};
pub(crate) use events::{Events, Happened, Notifier, Token, Watched};
pub(crate) use link::{Attended, Given, Link, Side};
pub(crate) use lost::Loss;
pub(crate) use notices::Notices;
pub(crate) use port::RingPort;
pub(crate) use source::RingSource;
pub(crate) use steering::queue_of;

/// The MTU of a device whose options say none, in bytes.
pub(crate) const DEFAULT_MTU: u32 = 1_500;

/// Checks the path of a unix socket.
pub(crate) fn check_path(path: &str) -> Result<(), &'static str> {
    if path.is_empty() || path.contains('\0') {
        Err("names no socket: give a path such as `/run/vm.sock`")
    } else if path.len() > LONGEST_PATH_BYTES {
        Err("has a path longer than 105 bytes: give a shorter one such as `/run/vm.sock`")
    } else {
        Ok(())
    }
}

/// The longest path that a unix socket can have, with two bytes more while it is being bound.
const LONGEST_PATH_BYTES: usize = 105;
