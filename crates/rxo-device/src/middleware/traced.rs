//! A source and a sink that show what passes them to a tracer.

use std::io::Write;

use rxo_frame::{Frame, Gather, Instant};

use super::TracePoint;
use crate::capture::Direction;
use crate::{
    DeviceError, FrameSink, FrameSource, SinkCapabilities, SinkCounters, SourceCapabilities,
    SourceCounters,
};

/// A source whose frames are written down as they are given, with their times of arrival; without
/// a place to write to, a source as it is.
#[derive(Clone, Debug)]
pub struct TracedSource<S, W: Write> {
    source: S,
    point: Option<TracePoint<W>>,
}

impl<S, W: Write> TracedSource<S, W> {
    /// The source, and where to write.
    pub fn new(source: S, point: impl Into<Option<TracePoint<W>>>) -> Self {
        Self { source, point: point.into() }
    }
}

impl<S: FrameSource, W: Write> FrameSource for TracedSource<S, W> {
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
        if let Some(point) = &self.point {
            for frame in batch.iter().skip(before) {
                point.write(frame.borrowed(), Direction::In, frame.arrived_at);
            }
        }
        received
    }

    fn lends(&self) -> Option<usize> {
        self.source.lends()
    }

    fn counters(&mut self) -> SourceCounters {
        self.source.counters()
    }

    fn poll_at(&self) -> Option<Instant> {
        self.source.poll_at()
    }

    fn expect_holds(&mut self) {
        self.source.expect_holds();
    }

    fn is_starved(&self) -> bool {
        self.source.is_starved()
    }
}

#[cfg(unix)]
impl<S: std::os::fd::AsFd, W: Write> std::os::fd::AsFd for TracedSource<S, W> {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.source.as_fd()
    }
}

/// A sink whose packets are written down as they are handed over; without a place to write to, a
/// sink as it is. `C` is called for the time, once for each batch.
#[derive(Clone, Debug)]
pub struct TracedSink<K, W: Write, C> {
    sink: K,
    point: Option<TracePoint<W>>,
    clock: C,
}

impl<K, W: Write, C> TracedSink<K, W, C> {
    /// The sink, where to write, and the clock of the frames.
    pub fn new(sink: K, point: impl Into<Option<TracePoint<W>>>, clock: C) -> Self {
        Self { sink, point: point.into(), clock }
    }

    /// Where it writes to.
    pub const fn point(&self) -> Option<&TracePoint<W>> {
        self.point.as_ref()
    }

    /// The sink, to ask it what it has to say.
    pub const fn inner_mut(&mut self) -> &mut K {
        &mut self.sink
    }
}

impl<K: FrameSink, W: Write, C: FnMut() -> Instant> FrameSink for TracedSink<K, W, C> {
    fn capabilities(&self) -> SinkCapabilities {
        self.sink.capabilities()
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        let Some(point) = &self.point else { return self.sink.transmit(batch) };
        let now = (self.clock)();
        self.sink.transmit(batch.inspect(|packet| point.write(*packet, Direction::Out, now)))
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

    fn abandon(&mut self) {
        self.sink.abandon();
    }
}

#[cfg(unix)]
impl<K: std::os::fd::AsFd, W: Write, C> std::os::fd::AsFd for TracedSink<K, W, C> {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.sink.as_fd()
    }
}
