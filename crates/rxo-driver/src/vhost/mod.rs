//! `vhost:PATH`: the device side of a virtio network device, for a guest.
//!
//! A virtual machine monitor such as QEMU connects to the socket and shares the memory of its guest. The
//! guest's transmit rings are then a source, and its receive rings a sink.
//!
//! * `backend` is the device: one front end at a time, which may disconnect and connect again.
//! * `connection` is one front end: its session, its memory, its queues. `queue` is one queue.
//! * `options` contains the features that are offered to a guest; `moderator` decides when the guest is notified.
//! * `shared` is the memory of a front end, as it is mapped.
//! * `areas` maps further memory that a front end shares, for the migration of its guest and for reconnecting.
//! * `announcement` is the frame by which a guest is announced after a migration.
//! * `places` counts the positions of payload in a guest's memory, for experiments.
//!
//! Source and sink are implemented in `virtio_net`. Both share the backend, and belong to one thread.
//!
//! Contract: no action of a front end or a guest causes a panic, blocks the thread of its device, or ends the
//! connection of another front end. There is one exception: a front end can make its eventfd blocking again and
//! fill the eventfd's counter. The next notification then blocks the thread until the front end reads the
//! counter. Guests that share a nic have a thread each (`rxo::worker::Guests`). A frame is copied out of the
//! guest's memory once, before any code reads it. While no guest has started, packets for it are dropped and
//! counted.

mod announcement;
mod areas;
mod backend;
mod connection;
mod kind;
mod moderator;
mod options;
mod places;
mod queue;
mod shared;
#[cfg(test)]
mod tests;

use crate::vhost_user;

#[cfg(test)]
pub(crate) use backend::Backend;
pub(crate) use kind::KIND;
pub use options::{GuestMemory, GuestOptions};
pub use places::{LINE_BYTES, PayloadPlaces};

/// The maximum number of descriptors that a device `vhost:PATH` has open: the descriptors of each ring and
/// their duplicates; the files of the memory, the log and the chains in flight; the sockets; and the
/// descriptors refused with one message.
pub const GUEST_FILES: usize =
    2 * connection::MOST_PAIRS * 4 + vhost_user::MOST_REGIONS + vhost_user::MOST_DESCRIPTORS + 14;
