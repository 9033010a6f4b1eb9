//! Workers and hosts between devices of the system.
//!
//! [`Device::open`] takes a name as a user types it. A [`Station`] puts a worker between two devices, or a
//! switch between one device and several other devices, optionally with [`Middleware`] around the devices;
//! [`Workers`] put several workers between the queues of two devices. `host` runs a host with its own TCP on
//! one device. The kinds of devices are not defined here, but in the table [`rxo_driver::KINDS`]. [`defaults`]
//! contains the default policy of a live path.

mod alarm;
pub mod defaults;
mod engine;
#[cfg(feature = "host")]
pub mod host;
mod middleware;
mod notices;
mod reports;
mod station;
mod switched;
mod waiter;
mod workers;

pub use engine::DeviceEngine;
pub use middleware::{FileLog, Middleware};
pub use rxo_driver::{Device, DeviceOptions};
pub use station::{Card, Event, Outcome, Remains, Station};
pub use waiter::SystemWaiter;
pub use workers::Workers;
