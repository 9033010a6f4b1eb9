//! What leaves: segments become packets, and many packets one batch for the device.
//!
//! Headers and short texts are written into one arena; long texts stay in the connection's send
//! buffer and are gathered from there, so a large send is never copied here. A batch may hold packets
//! of many connections as long as they are short. Nothing allocates once the arena has grown to its
//! size.

mod outbox;
mod packet;

pub(crate) use self::outbox::{Outbox, Path, Shape};
