//! Programs of others that rxo is tried with, in networks of `rxo-testbed`.
//!
//! Separate from the testbed, which the demo needs and which starts no program. From the bottom up:
//!
//! * [`Guest`] is another kernel: a small Linux in a virtual machine, behind a virtio card. Missing programs are
//!   installed as root, after one line that says so.
//! * [`Tunnel`] is two networks with a WireGuard tunnel between them, by whatever programs.
//! * [`callgrind()`] counts instructions.

mod callgrind;
mod guest;
mod tunnel;

pub use callgrind::callgrind;
pub use guest::{Guest, GuestImage, GuestNet, GuestOptions, Processor, Profile, Symbols};
pub use tunnel::{Tunnel, TunnelKind, TunnelProgram};
