//! A source behind a worse network.

use rxo_frame::{Frame, Instant};

use super::Impairment;
use crate::{DeviceError, FrameSource, SourceCapabilities, SourceCounters};

/// A source whose frames come through an [`Impairment`]. `C` is called for the time: the clock of
/// the frames' arrivals.
///
/// Frames are copied, so that the device has its memory back while they are under way.
pub struct ImpairedSource<S: FrameSource, C> {
    source: S,
    impairment: Impairment,
    clock: C,
    batch: Vec<Frame<S::Buffer>>,
    given: SourceCounters,
    /// Why the source gives no more. Told when everything under way has come out.
    failure: Option<DeviceError>,
}

impl<S: FrameSource, C: FnMut() -> Instant> ImpairedSource<S, C> {
    /// `source` behind `impairment`.
    pub fn new(source: S, impairment: Impairment, clock: C) -> Self {
        let (batch, given) = (Vec::new(), SourceCounters::default());
        Self { source, impairment, clock, batch, given, failure: None }
    }

    /// What is under way, and what was done to frames.
    pub const fn impairment(&self) -> &Impairment {
        &self.impairment
    }

    /// Lets at most `most` frames enter.
    fn take(&mut self, most: usize) {
        if self.failure.is_none() {
            self.failure = self.source.receive(&mut self.batch, most).err();
            self.batch.drain(..).for_each(|frame| self.impairment.push(&frame));
        }
    }

    /// Gives what is out of it, at most `most` frames.
    fn give(&mut self, batch: &mut Vec<Frame<Vec<u8>>>, most: usize) -> usize {
        let now = (self.clock)();
        for given in 0..most {
            let Some(frame) = self.impairment.pop(now) else { return given };
            self.given.frames += 1;
            self.given.bytes += frame.bytes.len() as u64;
            batch.push(frame);
        }
        most
    }
}

impl<S: FrameSource, C: FnMut() -> Instant> FrameSource for ImpairedSource<S, C> {
    type Buffer = Vec<u8>;

    fn capabilities(&self) -> SourceCapabilities {
        self.source.capabilities()
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<Vec<u8>>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        // What is due goes first: while it fills the budget the rest waits in the device, which
        // has a limit of its own, and not here.
        let due = self.give(batch, budget);
        if due == budget {
            return Ok(due);
        }
        self.take(budget);
        let given = due + self.give(batch, budget - due);
        match self.failure.take_if(|_| given == 0 && self.impairment.is_empty()) {
            Some(failure) => Err(failure),
            None => Ok(given),
        }
    }

    fn counters(&mut self) -> SourceCounters {
        let SourceCounters { frames, bytes, .. } = self.given;
        SourceCounters {
            frames,
            bytes,
            impaired: self.impairment.counters(),
            ..self.source.counters()
        }
    }

    fn poll_at(&self) -> Option<Instant> {
        self.impairment.poll_at().into_iter().chain(self.source.poll_at()).min()
    }
}

#[cfg(unix)]
impl<S: FrameSource + crate::Descriptors, C> crate::Descriptors for ImpairedSource<S, C> {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(std::os::fd::BorrowedFd<'f>)) {
        self.source.visit_descriptors(visit);
    }
}
