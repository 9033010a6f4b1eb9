//! Transmission: segments become packets, and many packets one batch for the device.
//!
//! Headers and short texts are written into one arena; long texts stay in the connection's send
//! buffer and are gathered from there, so a GSO send is never copied here. A device that segments gets
//! GSO sends whole; for one that does not, or refuses one, `cut.rs` segments. ACK templates likewise:
//! `acks.rs` expands them unless the device does. A batch may hold
//! packets of many connections as long as they are short. Nothing allocates once the arena has grown
//! to its size, unless a device refuses a GSO send.

mod acks;
mod batch;
mod cut;
mod headers;
mod large;
mod marks;
mod outbox;
mod packet;
mod shape;
mod template;

pub(crate) use self::marks::Marks;
pub(crate) use self::outbox::Outbox;
pub(crate) use self::shape::{Path, Shape};
