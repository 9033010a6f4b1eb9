//! From the nic to the host: through the engine.

use rxo_coalesce::{Deliveries, Engine};
use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::{Frame, Instant};

use super::splitting::Splitting;

/// One direction, coalescing.
pub(super) struct ToHost<S: FrameSource, K> {
    pub(super) source: S,
    pub(super) engine: Engine<S::Buffer>,
    pub(super) sink: K,
    batch: Vec<Frame<S::Buffer>>,
    budget: usize,
}

impl<S: FrameSource, K: FrameSink> ToHost<S, K> {
    pub(super) fn new(source: S, engine: Engine<S::Buffer>, sink: K, budget: usize) -> Self {
        Self { source, engine, sink, batch: Vec::with_capacity(budget), budget }
    }

    /// Takes a batch and hands over what comes of it; returns how many frames it had. `clock` is
    /// read once, after the batch was taken, so that no frame arrives after the poll.
    ///
    /// # Errors
    /// When a device failed. What was received before that has been handed over.
    pub(super) fn turn(
        &mut self,
        splitting: Option<&mut Splitting>,
        clock: impl FnOnce() -> Instant,
    ) -> Result<usize, DeviceError> {
        let received = self.source.receive(&mut self.batch, self.budget);
        let now = clock();
        let mut sent = Sent { sink: &mut self.sink, splitting, result: Ok(()) };
        if self.batch.is_empty() {
            // An empty poll is none: a policy that counts polls counts those with frames.
            self.engine.on_timeout(now, |deliveries| sent.transmit(&deliveries));
        } else {
            self.engine.poll(&mut self.batch, now, |deliveries| sent.transmit(&deliveries));
        }
        let sent = sent.result;
        received.and_then(|frames| sent.map(|()| frames))
    }

    /// Hands over everything held.
    ///
    /// # Errors
    /// When the sink failed.
    pub(super) fn flush(&mut self, now: Instant) -> Result<(), DeviceError> {
        // What the host answers now is not carried any more.
        let mut sent = Sent { sink: &mut self.sink, splitting: None, result: Ok(()) };
        self.engine.flush(now, |deliveries| sent.transmit(&deliveries));
        sent.result
    }
}

/// The sink during one call of the engine, and its first failure.
struct Sent<'a, K> {
    sink: &'a mut K,
    splitting: Option<&'a mut Splitting>,
    result: Result<(), DeviceError>,
}

impl<K: FrameSink> Sent<'_, K> {
    fn transmit<B: AsRef<[u8]>>(&mut self, deliveries: &Deliveries<'_, B>) {
        if let Some(splitting) = &mut self.splitting {
            deliveries.iter().for_each(|delivery| splitting.deliver(delivery));
        }
        // After a failure too: the sink counts as dropped what it cannot send.
        let sent = self.sink.transmit(deliveries.iter());
        if self.result.is_ok() {
            self.result = sent;
        }
    }
}
