//! From the host to the nic: frames as they are, and before stretch ACKs those that are missing, where
//! that is asked for.
//!
//! Super-packets and partial checksums are handed on with what was said of them; the sink, or the
//! system behind it, cuts and completes them.

use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::Frame;

use super::splitting::Splitting;

/// One direction, untouched.
pub(super) struct ToNic<S: FrameSource, K> {
    pub(super) source: S,
    pub(super) sink: K,
    batch: Vec<Frame<S::Buffer>>,
    budget: usize,
}

impl<S: FrameSource, K: FrameSink> ToNic<S, K> {
    pub(super) fn new(source: S, sink: K, budget: usize) -> Self {
        Self { source, sink, batch: Vec::with_capacity(budget), budget }
    }

    /// Takes a batch and hands it over; returns how many frames it had.
    ///
    /// # Errors
    /// When a device failed. What was received before that has been handed over.
    pub(super) fn turn(&mut self, splitting: Option<&mut Splitting>) -> Result<usize, DeviceError> {
        let received = self.source.receive(&mut self.batch, self.budget);
        let sent = if self.batch.is_empty() {
            Ok(())
        } else if let Some(splitting) = splitting {
            splitting.transmit(&self.batch, &mut self.sink)
        } else {
            self.sink.transmit(self.batch.iter().map(Frame::borrowed))
        };
        self.batch.clear();
        received.and_then(|frames| sent.map(|()| frames))
    }
}
