//! The driver domain: an engine between a card's frames and a guest's sink. Its clock advances only with the
//! frames.
//!
//! The same code is measured twice: on virtual time with a discarding sink, for the times of deliveries, and
//! under callgrind with a guest's ring, for the cost.

use anyhow::Result;
use rxo::{Config, Counters, Engine, Frame, FrameSink, Instant, Load};

use super::system::System;

/// A driver domain for one guest.
pub(super) struct Domain<'f, K> {
    engine: Engine<&'f [u8]>,
    batch: Vec<Frame<&'f [u8]>>,
    pub(super) sink: K,
}

impl<'f, K: FrameSink> Domain<'f, K> {
    /// Makes the domain of `system` in front of `sink`.
    pub(super) fn new(system: System, sink: K) -> Result<Self> {
        let engine = Engine::new(Config::new(system.policy(), 1))?;
        Ok(Self { engine, batch: Vec::with_capacity(MOST_FRAMES), sink })
    }

    /// Processes the frames of a poll, which ends when the last of them has arrived. `load` is the guest's
    /// unread data.
    pub(super) fn poll(
        &mut self,
        frames: impl Iterator<Item = Frame<&'f [u8]>>,
        load: Option<Load>,
    ) -> Result<()> {
        self.batch.extend(frames);
        let Some(now) = self.batch.last().map(|frame| frame.arrived_at) else { return Ok(()) };
        counted_poll(&mut self.engine, &mut self.batch, &mut self.sink, (load, now))
    }

    /// Runs the engine's timeouts that are due at `now`, as a worker does.
    pub(super) fn look(&mut self, load: Option<Load>, now: Instant) -> Result<()> {
        let (engine, sink) = (&mut self.engine, &mut self.sink);
        let mut result = Ok(());
        engine.on_timeout_under(load, now, |deliveries| result = sink.transmit(deliveries.iter()));
        Ok(result?)
    }

    /// Returns the time of the engine's next timeout; `None` if none is set.
    pub(super) fn look_at(&self) -> Option<Instant> {
        self.engine.poll_at()
    }

    pub(super) fn counters(&self) -> &Counters {
        self.engine.counters()
    }
}

/// Returns the packets of a delivery: an aggregate, or a packet that could have been one. `None` before the first, so
/// also if nothing is coalesced.
pub(super) fn packets_an_aggregate(counters: &Counters) -> Option<f64> {
    let deliveries = counters.aggregates + counters.singles;
    let packets = (counters.aggregated_segments + counters.singles) as f64;
    (deliveries > 0).then(|| packets / deliveries as f64)
}

/// Runs one poll. Callgrind counts inside this function, whose name is in its arguments.
#[inline(never)]
fn counted_poll<'f, K: FrameSink>(
    engine: &mut Engine<&'f [u8]>,
    batch: &mut Vec<Frame<&'f [u8]>>,
    sink: &mut K,
    (load, now): (Option<Load>, Instant),
) -> Result<()> {
    let mut result = Ok(());
    engine.poll_under(load, batch, now, |deliveries| {
        let sent = sink.transmit(deliveries.iter());
        if result.is_ok() {
            result = sent;
        }
    });
    Ok(result?)
}

/// Most frames of a poll.
const MOST_FRAMES: usize = 256;
