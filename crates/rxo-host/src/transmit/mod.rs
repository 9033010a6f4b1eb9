//! Transmission: turns segments into packets, and many packets into one batch for the device.
//!
//! Headers and short payloads are written into one arena. Long payloads stay in the connection's send buffer,
//! from where the device gathers them, so a GSO frame is never copied here. A device with segmentation gets
//! whole GSO frames. For other devices, and if a device refuses a GSO frame, `cut.rs` splits the frame.
//! Likewise `acks.rs` expands ACK templates unless the device expands them. A batch may contain packets of many
//! connections if their payloads are short. Memory is allocated only until the arena has its final size, and if
//! a device refuses a GSO frame.

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
