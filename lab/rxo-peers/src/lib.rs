//! Runs foreign programs that rxo is tested with, in networks of `rxo-testbed`.
//!
//! Separate from the testbed, which the demo uses and which starts no program. From the bottom up:
//!
//! * [`Guest`] is another kernel: a small Linux in a virtual machine, with a virtio card. As root, missing
//!   programs are installed after a one-line notice.
//! * [`Tunnel`] is two networks with a WireGuard tunnel between them, run by any two programs.
//! * [`callgrind()`] counts instructions.

mod callgrind;
mod guest;
mod tunnel;

pub use callgrind::callgrind;
pub use guest::{Guest, GuestImage, GuestNet, GuestOptions, Processor, Profile, Symbols};
pub use tunnel::{Tunnel, TunnelKind, TunnelProgram};
