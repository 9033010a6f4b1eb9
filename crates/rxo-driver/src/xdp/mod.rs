//! AF_XDP sockets: receive and send the frames of an interface's queues in memory that its driver shares.
//!
//! * [`program`] gives frames to sockets, and [`socket`] opens one on a queue, in zero-copy or copy mode.
//! * [`ring`] is the arithmetic of the four rings of a socket, over [`memory`]; [`chunks`] says who owns which memory.
//! * [`receiver`] and [`sender`] are the two halves of a socket; [`source`] and [`port`] make a device of them.
//! * [`kind`] opens all of it by name, and falls back to the packet ring where the system or the interface has no AF_XDP.
//!
//! The program runs in the driver, never in the kernel's generic place: that one runs late, so a packet ring costs less
//! there, and it hides GSO, VLAN tags and unfinished checksums, which a packet ring shows.

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
