//! Transmission: turns segments into packets, and many packets into one batch for the device.
//!
//! Headers and short payloads are written into one arena. Long payloads stay in the connection's send buffer,
//! from where the device gathers them, so a GSO send is never copied here. A device with segmentation gets
//! GSO sends whole; for other devices, and for a GSO send that is refused, `cut.rs` splits them. Likewise
//! `acks.rs` expands ACK templates unless the device does. A batch may contain packets of many connections if
//! their payloads are short. Nothing is allocated once the arena has grown to its size, unless a device
//! refuses a GSO send.

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
