//! `virtio:PATH`: the driver side of a virtio network device, in user space.
//!
//! The device connects to a vhost-user back end, such as `vhost:PATH` of another rxo or a port of DPDK's
//! `testpmd`, and shares memory with the back end as a guest does. So any rxo program can act as a guest, and it
//! exchanges frames without system calls.
//!
//! * `handshake` negotiates features with the back end.
//! * `layout` computes the positions of rings and buffers in the shared memory.
//! * `driver` owns the rings and their buffers.
//! * `frontend` is the device: a connection to a back end. If the back end ends, it connects again.
//!
//! Source and sink are implemented in `virtio_net`. Both share the front end and belong to one thread.
//!
//! Contract: no content of the shared memory causes a panic, and a frame is copied out before any code reads
//! it. While no back end is connected, packets are dropped and counted.

mod driver;
mod frontend;
mod handshake;
mod kind;
mod layout;
#[cfg(test)]
mod tests;

pub(crate) use kind::KIND;
