//! Sending batches: what every sink of this crate does alike, whatever way it submits.
//!
//! From the bottom up: [`batch`] encodes packets, a [`Writer`] submits them, and the
//! [`Transmitter`] decides what happens when the kernel refuses one.
//!
//! Contract: packets go out in the order given. One that is refused as a whole goes out as the
//! frames it stands for, before whatever comes after it. Nothing here waits: what the device has no
//! room for is kept in a bounded [`backlog`], and the caller says when to go on.

mod backlog;
pub(crate) mod batch;
mod refusal;
mod sendmmsg;
mod transmitter;
mod writev;

pub(crate) use sendmmsg::SendMmsg;
pub(crate) use transmitter::Transmitter;
pub(crate) use writev::Writev;

use std::io;

use batch::Sealed;

/// A way to hand encoded packets to the kernel.
pub(crate) trait Writer {
    /// Submits the packets from the `from`-th on, in order, up to the first that is refused. What
    /// comes after that one has not been submitted.
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written;
}

impl<W: Writer + ?Sized> Writer for Box<W> {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        (**self).write(batch, from)
    }
}

/// What came of a submission. Either something was sent, or something was refused, or both.
#[derive(Debug)]
pub(crate) struct Written {
    /// How many packets the kernel took.
    pub(crate) sent: usize,
    /// System calls made.
    pub(crate) submissions: u64,
    /// Why it did not take the next, if it did not.
    pub(crate) refused: Option<io::Error>,
}
