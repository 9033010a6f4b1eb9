//! Parts that both sides of a virtio network device share (virtio 1.2, section 5.1).
//!
//! * [`Accepts`]: the kinds of packets that the receiving side accepts, by the negotiated features.
//! * [`Encoder`]: writes packets of a batch into a ring. If the other side does not accept a packet, the encoder
//!   completes its checksum, segments it, or refuses it; after a refusal, the transmitter sends the original
//!   frames.
//! * [`Copying`]: the method and the layout by which packets are copied, and counters of the copies.
//! * [`Side`] and [`Link`]: a device and its other side; [`RingSource`] and [`RingPort`] are the source and
//!   the sink over either.
//! * [`Buffers`]: the memory of received frames.
//! * [`queue_of`]: chooses one of several queues for a packet.
//! * [`Events`]: the descriptors to wait for: control socket and notifications.
//! * [`mapping`]: shared memory of this process.
//!
//! This module is separate from the devices because the device side (`vhost`) and the driver side (`virtio`)
//! both use it.

mod accepts;
mod buffers;
mod copying;
mod encoder;
mod events;
pub(crate) mod holes;
mod link;
mod lost;
pub(crate) mod mapping;
mod notices;
mod port;
#[cfg(test)]
pub(crate) mod samples;
mod shared;
mod source;
mod steering;

pub(crate) use accepts::{Accepts, header_bytes};
pub(crate) use buffers::Buffers;
pub(crate) use copying::{Copies, Copying};
pub use copying::{CopyPath, FrameLayout};
pub(crate) use encoder::{Encoder, PacketRing};
pub(crate) use events::{Events, Notifier, PendingEvents, Token, Watched};
pub(crate) use link::{Attended, Link, RingRead, Side};
pub(crate) use lost::Loss;
pub(crate) use notices::Notices;
pub(crate) use port::RingPort;
pub(crate) use shared::Shared;
pub(crate) use source::RingSource;
pub(crate) use steering::queue_of;

/// The MTU of a device whose options contain none, in bytes.
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

/// The longest path of a unix socket; while the socket is being bound, its path is two bytes longer.
const LONGEST_PATH_BYTES: usize = 105;
