//! AF_XDP sockets: receive and send the frames of an interface's queues, in memory shared with its driver.
//!
//! * [`program`] redirects frames to sockets, and [`socket`] opens one on a queue, in zero-copy or copy mode.
//! * [`ring`] is the arithmetic of the four rings of a socket, over [`memory`]; [`chunks`] tracks the owner
//!   of each part of the memory.
//! * [`receiver`] and [`sender`] are the two halves of a socket; [`source`] and [`port`] form a device with
//!   them.
//! * [`kind`] opens the device by name, and uses the packet ring if the system or the interface has no
//!   AF_XDP.
//!
//! The program runs in the driver, never in the kernel's generic mode. In generic mode the program runs so late
//! that a packet ring costs less. Generic mode also hides GSO, VLAN tags and partial checksums, which a packet
//! ring reports.

mod chunks;
mod kernel_types;
mod kind;
mod memory;
mod open;
mod port;
mod program;
mod receiver;
mod ring;
mod sender;
mod shared;
mod socket;
mod source;
mod unfinished;

pub(crate) use chunks::ChunkBuf;
pub(crate) use kind::KIND;
pub(crate) use program::try_to_load;
