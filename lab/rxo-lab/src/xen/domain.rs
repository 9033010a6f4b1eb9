//! The driver domain: an engine between the frames of a card and a guest's sink, on a clock that only the
//! frames move.
//!
//! The same code is measured in two ways: on virtual time with a sink that discards (what is delivered when),
//! and under callgrind with the ring of a guest (what it costs).

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
    /// The domain of `system` in front of `sink`.
    ///
    /// # Errors
    /// If the policy is not one for an engine.
    pub(super) fn new(system: System, sink: K) -> Result<Self> {
        let engine = Engine::new(Config::new(system.policy(), 1))?;
        Ok(Self { engine, batch: Vec::with_capacity(MOST_FRAMES), sink })
    }

    /// Takes the frames of a poll that ends when the last of them has arrived. `load` is what the guest has
    /// not read yet.
    ///
    /// # Errors
    /// If the sink fails.
    pub(super) fn poll(
        &mut self,
        frames: impl Iterator<Item = Frame<&'f [u8]>>,
        load: Option<Load>,
    ) -> Result<()> {
        self.batch.extend(frames);
        let Some(now) = self.batch.last().map(|frame| frame.arrived_at) else { return Ok(()) };
        counted_poll(&mut self.engine, &mut self.batch, &mut self.sink, (load, now))
    }

    /// Looks at the time, as a worker does when the engine asks for it.
    ///
    /// # Errors
    /// If the sink fails.
    pub(super) fn look(&mut self, load: Option<Load>, now: Instant) -> Result<()> {
        let (engine, sink) = (&mut self.engine, &mut self.sink);
        let mut result = Ok(());
        engine.on_timeout_under(load, now, |deliveries| result = sink.transmit(deliveries.iter()));
        Ok(result?)
    }

    /// When it must look at the time.
    pub(super) fn look_at(&self) -> Option<Instant> {
        self.engine.poll_at()
    }

    pub(super) fn counters(&self) -> &Counters {
        self.engine.counters()
    }
}

/// One poll. Callgrind counts what happens inside; its name is in the arguments for callgrind.
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

/// The largest poll.
const MOST_FRAMES: usize = 256;
