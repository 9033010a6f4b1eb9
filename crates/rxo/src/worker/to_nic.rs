//! From the host to the nic: frames unchanged, and if configured, inserted ACKs before stretch ACKs.
//!
//! GSO frames and partial checksums are passed on with their metadata. The sink, or the system behind
//! it, segments and completes them.

use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::Frame;

use super::inlet::{Inlet, Taken};
use super::outlet::Outlet;
use super::splitting::Splitting;

/// The direction that passes frames on.
pub(super) struct ToNic<S: FrameSource, K> {
    pub(super) inlet: Inlet<S>,
    pub(super) outlet: Outlet<K>,
}

impl<S: FrameSource, K: FrameSink> ToNic<S, K> {
    pub(super) fn new(source: S, sink: K, budget: usize) -> Self {
        Self { inlet: Inlet::new(source, budget), outlet: Outlet::new(sink) }
    }

    /// Takes a batch and sends it. Returns what it took. Takes no batch while the sink is
    /// blocked. Without `is_worth_a_look` it takes only frames that the source has delayed.
    ///
    /// # Errors
    /// If a device failed. What was received before that has been sent.
    pub(super) fn turn(
        &mut self,
        is_worth_a_look: bool,
        splitting: Option<&mut Splitting>,
    ) -> Result<Taken, DeviceError> {
        let resumed = self.outlet.resume();
        let received = self.inlet.take(is_worth_a_look, !self.outlet.is_blocked());
        let (batch, sink) = (&mut self.inlet.batch, &mut self.outlet.sink);
        let sent = if batch.is_empty() {
            Ok(())
        } else if let Some(splitting) = splitting {
            splitting.transmit(batch, sink)
        } else {
            sink.transmit(batch.iter().map(Frame::borrowed))
        };
        batch.clear();
        resumed.and(received).and(sent)?;
        // A blocked sink wants no more, however much there is.
        Ok(if self.outlet.is_blocked() { Taken::default() } else { self.inlet.taken })
    }
}
