//! A source and a sink that log every packet.

use rxo_frame::{Frame, Gather, Instant, Load};

use super::{Direction, PacketLog};
use crate::{
    DeviceError, FrameSink, FrameSource, Look, Looked, SinkCapabilities, SinkCounters,
    SourceCapabilities, SourceCounters,
};

/// A source that logs each frame, at the frame's arrival time. Without a log it only passes frames on.
#[derive(Clone, Debug)]
pub struct TracedSource<S, L> {
    source: S,
    log: Option<L>,
}

impl<S, L: PacketLog> TracedSource<S, L> {
    /// Creates a source that logs the frames of `source`.
    pub fn new(source: S, log: impl Into<Option<L>>) -> Self {
        Self { source, log: log.into() }
    }

    /// Returns the wrapped source.
    pub const fn inner(&self) -> &S {
        &self.source
    }

    /// Returns the wrapped source, to change its settings.
    pub const fn inner_mut(&mut self) -> &mut S {
        &mut self.source
    }
}

impl<S: FrameSource, L: PacketLog> FrameSource for TracedSource<S, L> {
    type Buffer = S::Buffer;

    fn capabilities(&self) -> SourceCapabilities {
        self.source.capabilities()
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<S::Buffer>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let before = batch.len();
        let received = self.source.receive(batch, budget);
        if let Some(log) = &self.log {
            for frame in batch.iter().skip(before) {
                log.log(frame.borrowed(), Direction::In, frame.arrived_at);
            }
        }
        received
    }

    /// Receives frames of the wrapped source with inspection. Each frame is logged before `look` inspects it,
    /// even if `look` then consumes it.
    fn receive_past(
        &mut self,
        batch: &mut Vec<Frame<S::Buffer>>,
        budget: usize,
        look: Look<'_>,
    ) -> Result<Looked, DeviceError> {
        let Some(log) = &self.log else { return self.source.receive_past(batch, budget, look) };
        self.source.receive_past(batch, budget, &mut |frame| {
            log.log(frame, Direction::In, frame.arrived_at);
            look(frame)
        })
    }

    fn lends(&self) -> Option<usize> {
        self.source.lends()
    }

    fn queue_frames(&self) -> Option<usize> {
        self.source.queue_frames()
    }

    fn counters(&mut self) -> SourceCounters {
        self.source.counters()
    }

    fn arrived(&mut self) -> Option<u64> {
        self.source.arrived()
    }

    fn gives_fewer(&mut self) -> bool {
        self.source.gives_fewer()
    }

    fn poll_at(&self) -> Option<Instant> {
        self.source.poll_at()
    }

    fn peers_gone(&self) -> u64 {
        self.source.peers_gone()
    }

    fn attend(&mut self) {
        self.source.attend();
    }

    fn expect_holds(&mut self) {
        self.source.expect_holds();
    }

    fn is_starved(&self) -> bool {
        self.source.is_starved()
    }
}

#[cfg(unix)]
impl<S: crate::Descriptors, L> crate::Descriptors for TracedSource<S, L> {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(std::os::fd::BorrowedFd<'f>)) {
        self.source.visit_descriptors(visit);
    }
}

/// A sink that logs each packet. Without a log it only passes packets on. `C` returns the time and is called
/// once for each batch.
#[derive(Clone, Debug)]
pub struct TracedSink<K, L, C> {
    sink: K,
    log: Option<L>,
    clock: C,
}

impl<K, L: PacketLog, C> TracedSink<K, L, C> {
    /// Wraps `sink`. `clock` must be the clock of the frames.
    pub fn new(sink: K, log: impl Into<Option<L>>, clock: C) -> Self {
        Self { sink, log: log.into(), clock }
    }

    /// Returns this sink with `log`, or without one.
    #[must_use]
    pub fn with_log(self, log: impl Into<Option<L>>) -> Self {
        Self { log: log.into(), ..self }
    }

    /// Returns the log of frames; `None` if frames are not logged.
    pub const fn log(&self) -> Option<&L> {
        self.log.as_ref()
    }

    /// Returns the wrapped sink.
    pub const fn inner_mut(&mut self) -> &mut K {
        &mut self.sink
    }
}

impl<K: FrameSink, L: PacketLog, C: FnMut() -> Instant> FrameSink for TracedSink<K, L, C> {
    fn capabilities(&self) -> SinkCapabilities {
        self.sink.capabilities()
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        let Some(log) = &self.log else { return self.sink.transmit(batch) };
        let now = (self.clock)();
        self.sink.transmit(batch.inspect(|packet| log.log(*packet, Direction::Out, now)))
    }

    fn counters(&self) -> SinkCounters {
        self.sink.counters()
    }

    fn is_blocked(&self) -> bool {
        self.sink.is_blocked()
    }

    fn resume(&mut self) -> Result<(), DeviceError> {
        self.sink.resume()
    }

    fn load(&self) -> Option<Load> {
        self.sink.load()
    }

    fn queued_bytes(&self) -> Option<u64> {
        self.sink.queued_bytes()
    }

    fn kept_frames(&self) -> u64 {
        self.sink.kept_frames()
    }

    fn departed(&mut self) -> Option<u64> {
        self.sink.departed()
    }

    fn abandon(&mut self) {
        self.sink.abandon();
    }
}

#[cfg(unix)]
impl<K: crate::Descriptors, L, C> crate::Descriptors for TracedSink<K, L, C> {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(std::os::fd::BorrowedFd<'f>)) {
        self.sink.visit_descriptors(visit);
    }
}
