//! Transmit: sends batches of packets, in the same way for every sink of this crate.
//!
//! The layers from the bottom up: [`batch`] encodes packets, a [`Writer`] submits them, and the
//! [`Transmitter`] decides what happens when a packet is refused.
//!
//! Contract: packets are sent in the order given. If an aggregate is refused, its original frames are sent in
//! its place. No call blocks: while the device is full, packets are kept in a bounded [`backlog`], and the
//! caller decides when to resume.

mod backlog;
pub(crate) mod batch;
mod cutter;
mod full_queue;
mod refusal;
mod sendmmsg;
mod tally;
mod transmitter;
mod writev;

pub(crate) use sendmmsg::SendMmsg;
pub(crate) use transmitter::Transmitter;
pub(crate) use writev::Writev;

use std::io;

use batch::Sealed;

/// A way to submit encoded packets to the kernel, called once per batch.
pub(crate) trait Writer {
    /// Submits the packets in order, starting at index `from`, up to the first that is refused. The packets
    /// after that one are not submitted.
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written;
}

impl<W: Writer + ?Sized> Writer for Box<W> {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        (**self).write(batch, from)
    }
}

/// The outcome of a submission: packets were sent, one was refused, or both.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The number of packets that were sent.
    pub(crate) sent: usize,
    /// The number of system calls made.
    pub(crate) submissions: u64,
    /// The number of bytes that this process copied for the packets that were sent; 0 if the kernel copies
    /// them.
    pub(crate) bytes_copied: u64,
    /// The number of pieces of the packets that were sent; 0 if the kernel copies the packets.
    pub(crate) pieces: u64,
    /// The error for the packet after those that were sent; `None` if no packet was refused.
    pub(crate) refused: Option<io::Error>,
}
