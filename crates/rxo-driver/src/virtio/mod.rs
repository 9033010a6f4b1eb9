//! `virtio:PATH`: the driver side of a virtio network device, in user space.
//!
//! It connects to a back end of vhost-user, such as `vhost:PATH` of another rxo or a port of DPDK's
//! `testpmd`, and shares memory with it as a guest does. So any rxo program can be a guest, and its
//! frames cost no system call.
//!
//! * `handshake` agrees on features with the back end.
//! * `layout` says where rings and buffers are in the shared memory.
//! * `driver` is both rings and their buffers.
//! * `frontend` is the device: a connection that is made again when the back end ends.
//!
//! The ends are those of `virtio_net`. They share the front end and belong to one thread.
//!
//! Contract: whatever the back end writes into the shared memory, nothing panics, and a frame is
//! copied out before anything looks at it. While there is no back end, what is sent is dropped and
//! counted.

mod driver;
mod frontend;
mod handshake;
mod kind;
mod layout;
#[cfg(test)]
mod tests;

pub(crate) use kind::KIND;
