//! Sending batches, alike for every sink of this crate.
//!
//! From the bottom up: [`batch`] encodes packets, a [`Writer`] submits them, and the [`Transmitter`]
//! decides what happens when a packet is refused.
//!
//! Contract: packets are sent in the order given. If an aggregate is refused, its original frames are
//! sent in its place. Nothing here waits: packets for which the device has no room are kept in a
//! bounded [`backlog`], and the caller decides when to go on.

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

/// A way to submit encoded packets. It is called once a batch.
pub(crate) trait Writer {
    /// Submits the packets from index `from` on, in order, and stops at the first that is refused. The
    /// packets after that one have not been submitted.
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
    /// How many packets were sent.
    pub(crate) sent: usize,
    /// System calls made.
    pub(crate) submissions: u64,
    /// Bytes copied in this process for the packets that were sent; 0 if the system copies.
    pub(crate) bytes_copied: u64,
    /// Pieces that those packets had; 0 if the system copies.
    pub(crate) pieces: u64,
    /// Why the next packet was refused, if it was.
    pub(crate) refused: Option<io::Error>,
}
