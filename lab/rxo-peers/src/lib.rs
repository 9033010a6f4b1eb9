//! What rxo is tried with in networks of `rxo-testbed`: programs of others, and peers that Linux is not.
//!
//! Separate from the testbed, which the demo uses and which starts no program. From the bottom up:
//!
//! * [`Guest`] is another kernel: a small Linux in a virtual machine, with a virtio card. As root, missing
//!   programs are installed after a one-line notice.
//! * [`Tunnel`] is two networks with a WireGuard tunnel between them, run by any two programs.
//! * [`Carrier`] is two networks with a program between them, as published or patched with rxo.
//! * [`callgrind()`] counts instructions, and [`profile`] reads the counts.
//! * [`CountingTransfer`] is one connection from a sender of our own that counts ACKs.
//! * [`Folder`] is a temporary folder for what programs write.
//! * [`DatagramFlow`] is numbered datagrams at a rate. Every byte is checked, and missing ones are counted.
//! * [`SharedLink`] is the network of many senders and one slower link.
//! * [`TunnelEnd`] is one end of a tunnel that the kernel may lack.

mod callgrind;
mod carrier;
mod counting_sender;
mod datagrams;
mod folder;
mod guest;
mod process;
pub mod profile;
mod shared_link;
mod tunnel;
mod tunnel_end;

pub use callgrind::callgrind;
pub use carrier::{Carrier, CarrierKind, Programs, Way};
pub use counting_sender::{CountingConfig, CountingReport, CountingTransfer, ModelCounters};
pub use datagrams::{DatagramFlow, DatagramReport, datagram};
pub use folder::Folder;
pub use guest::{
    Guest, GuestImage, GuestNet, GuestOptions, Migration, Processor, Profile, Symbols,
};
pub use shared_link::{SharedLink, SharedLinkOptions};
pub use tunnel::{Tunnel, TunnelKind, TunnelProgram};
pub use tunnel_end::{Below, Encapsulation, TunnelCounters, TunnelEnd, TunnelOptions};
