//! A device source that stamps frames with the virtual clock.

use std::cell::Cell;
use std::rc::Rc;

use rxo::device::{DeviceError, FrameSource, Look, Looked, SourceCapabilities, SourceCounters};
use rxo::{Frame, Instant};
use rxo_driver::{DeviceBuf, DeviceSource};

/// The frames of `source`, with arrival times from `clock`.
#[derive(Debug)]
pub(super) struct Stamped {
    source: DeviceSource,
    clock: Rc<Cell<Instant>>,
}

impl Stamped {
    pub(super) const fn new(source: DeviceSource, clock: Rc<Cell<Instant>>) -> Self {
        Self { source, clock }
    }
}

impl FrameSource for Stamped {
    type Buffer = DeviceBuf;

    fn capabilities(&self) -> SourceCapabilities {
        self.source.capabilities()
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let (before, now) = (batch.len(), self.clock.get());
        let received = self.source.receive(batch, budget)?;
        batch[before..].iter_mut().for_each(|frame| frame.arrived_at = now);
        Ok(received)
    }

    fn receive_past(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
        look: Look<'_>,
    ) -> Result<Looked, DeviceError> {
        let (before, now) = (batch.len(), self.clock.get());
        let mut stamped = |frame: Frame<&[u8]>| look(Frame { arrived_at: now, ..frame });
        let looked = self.source.receive_past(batch, budget, &mut stamped)?;
        batch[before..].iter_mut().for_each(|frame| frame.arrived_at = now);
        Ok(looked)
    }

    fn counters(&mut self) -> SourceCounters {
        self.source.counters()
    }

    fn lends(&self) -> Option<usize> {
        self.source.lends()
    }

    fn is_starved(&self) -> bool {
        self.source.is_starved()
    }

    fn attend(&mut self) {
        self.source.attend();
    }
}
