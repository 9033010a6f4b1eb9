//! From the host to the nic: frames as they are, and before stretch ACKs those that are missing, where
//! that is asked for.
//!
//! Super-packets and partial checksums are handed on with what was said of them; the sink, or the
//! system behind it, cuts and completes them.

use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::Frame;

use super::outlet::Outlet;
use super::splitting::Splitting;

/// One direction, untouched.
pub(super) struct ToNic<S: FrameSource, K> {
    pub(super) source: S,
    pub(super) outlet: Outlet<K>,
    batch: Vec<Frame<S::Buffer>>,
    budget: usize,
}

impl<S: FrameSource, K: FrameSink> ToNic<S, K> {
    pub(super) fn new(source: S, sink: K, budget: usize) -> Self {
        Self { source, outlet: Outlet::new(sink), batch: Vec::with_capacity(budget), budget }
    }

    /// Takes a batch and hands it over; returns how many frames it had. Takes none while the sink is
    /// blocked, and with `is_worth_a_look` unset only what the source has held back.
    ///
    /// # Errors
    /// When a device failed. What was received before that has been handed over.
    pub(super) fn turn(
        &mut self,
        is_worth_a_look: bool,
        splitting: Option<&mut Splitting>,
    ) -> Result<usize, DeviceError> {
        let resumed = self.outlet.resume();
        let is_worth_a_look = is_worth_a_look || self.source.poll_at().is_some();
        let received = if is_worth_a_look && !self.outlet.is_blocked() {
            self.source.receive(&mut self.batch, self.budget)
        } else {
            Ok(0)
        };
        let sink = &mut self.outlet.sink;
        let sent = if self.batch.is_empty() {
            Ok(())
        } else if let Some(splitting) = splitting {
            splitting.transmit(&self.batch, sink)
        } else {
            sink.transmit(self.batch.iter().map(Frame::borrowed))
        };
        self.batch.clear();
        let frames = resumed.and(received).and_then(|frames| sent.map(|()| frames))?;
        // More than that is not wanted now, however much there is.
        Ok(if self.outlet.is_blocked() { 0 } else { frames })
    }
}
