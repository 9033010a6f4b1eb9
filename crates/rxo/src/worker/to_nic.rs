//! Send path of a worker: moves frames from the host unchanged to the nic and, if configured, inserts ACKs
//! before stretch ACKs.
//!
//! GSO frames and partial checksums are forwarded with their metadata. The sink, or the system behind it,
//! segments GSO frames and completes checksums.

use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::Frame;

use super::outlet::Outlet;
use super::splitting::Splitting;

/// The send path of a worker, from the host to the nic, which forwards frames unchanged.
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

    /// Receives a batch from the host and sends it. Returns the number of frames in the batch. Receives no batch while
    /// the sink is blocked. If `may_have_frames` is `false`, only receives frames that the source has delayed.
    ///
    /// # Errors
    /// If a device failed. Frames received before that were sent.
    pub(super) fn turn(
        &mut self,
        may_have_frames: bool,
        splitting: Option<&mut Splitting>,
    ) -> Result<usize, DeviceError> {
        let resumed = self.outlet.resume();
        let may_have_frames = may_have_frames || self.source.poll_at().is_some();
        let received = if may_have_frames && !self.outlet.is_blocked() {
            self.source.receive(&mut self.batch, self.budget)
        } else {
            self.source.attend();
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
        // A blocked sink ends the turn, however many frames are waiting.
        Ok(if self.outlet.is_blocked() { 0 } else { frames })
    }
}
