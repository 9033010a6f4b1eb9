//! What an interface has, moved to another and given back: addresses, routes, neighbours, settings.
//!
//! * [`Link`] is the interface itself: name, hardware address, what stands above and below it.
//! * [`Holdings`] is what it has, read at one time, as the bytes that the kernel shows.
//! * [`Settings`] are the kernel's switches for it under `/proc/sys/net`.
//!
//! Contract: reading changes nothing. What is moved stays in memory and can be given back by anyone
//! who has it, as often as they like: what is there already is left alone. Interfaces are known by
//! their index, because a name may change or come to another.

mod address;
mod holdings;
mod item;
mod link;
mod neighbour;
mod record;
mod route;
mod settings;

pub use holdings::Holdings;
pub use link::Link;
pub use settings::Settings;
