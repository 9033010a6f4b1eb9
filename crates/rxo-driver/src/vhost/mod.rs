//! `vhost:PATH`: the device side of a virtio network device, for a guest.
//!
//! A machine monitor such as QEMU connects to the socket and gives the memory of its guest. Then the
//! guest's transmit rings are a source and its receive rings a sink.
//!
//! * `backend` is the device: one front end at a time, which may close and come again.
//! * `connection` is one front end: its session, its memory, its queues.
//! * `options` is what a guest is offered; `moderator` decides when it is notified.
//! * `places` counts where payload lies in a guest's memory, for experiments.
//!
//! The ends are those of `virtio_net`. They share the backend and belong to one thread.
//!
//! Contract: nothing that a front end or a guest does panics, blocks this process, or ends more than
//! its own connection. One exception is known: a front end that makes its eventfd block again, and fills the
//! counter just before a notification, delays this process until it reads the counter. A frame is copied out of the guest once, before anything looks at it. While no
//! guest has started, what is sent to it is dropped and counted.

mod backend;
mod connection;
mod kind;
mod moderator;
mod options;
mod places;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use backend::Backend;
pub(crate) use kind::KIND;
pub use options::GuestOptions;
pub use places::{LINE_BYTES, PayloadPlaces};
