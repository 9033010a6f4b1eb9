//! Handover: moves the addresses, routes, neighbours and settings of an interface to another one, and back.
//!
//! * [`Link`] describes the interface itself: name, hardware address, interfaces above and below.
//! * [`Holdings`] contain its addresses, routes and neighbours, as the bytes of the kernel's dump.
//! * [`Settings`] contain its switches under `/proc/sys/net`.
//! * [`Change`] is the kernel's notice that one of these has changed.
//!
//! Contract: reading changes nothing. [`Holdings`] stay in memory while their items are moved. Moving back
//! may be repeated, also by another process: an item that exists already stays unchanged. Interfaces are
//! identified by index, because a name may change or pass to another interface.

mod address;
mod advertised;
mod change;
pub(crate) mod elsewhere;
mod holdings;
mod item;
mod link;
mod neighbour;
mod record;
mod route;
mod settings;

pub(crate) use change::Change;
pub use holdings::Holdings;
pub(crate) use link::Link;
pub(crate) use settings::Settings;
