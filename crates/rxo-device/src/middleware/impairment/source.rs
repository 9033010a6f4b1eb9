//! A source behind an impaired network.

use rxo_frame::{Frame, Instant};

use super::Impairment;
use crate::{DeviceError, FrameSource, SourceCapabilities, SourceCounters};

/// A source whose frames pass through an [`Impairment`]. `C` returns the time, on the clock of the arrival
/// times.
///
/// Frames are copied, so that the device's memory is free while they are delayed. The copies have the buffer
/// type of the device, so the code that handles the device's frames is compiled only once.
#[derive(Debug)]
pub struct ImpairedSource<S: FrameSource, C> {
    source: S,
    impairment: Impairment,
    clock: C,
    batch: Vec<Frame<S::Buffer>>,
    given: SourceCounters,
    /// The error of the wrapped source. It is returned after all delayed frames were released; `None` if there
    /// was no error.
    failure: Option<DeviceError>,
}

impl<S: FrameSource<Buffer: From<Vec<u8>>>, C: FnMut() -> Instant> ImpairedSource<S, C> {
    /// Creates a source that impairs the frames of `source`.
    pub fn new(source: S, impairment: Impairment, clock: C) -> Self {
        let (batch, given) = (Vec::new(), SourceCounters::default());
        Self { source, impairment, clock, batch, given, failure: None }
    }

    /// Returns the wrapped source, to read its counters.
    pub const fn inner(&self) -> &S {
        &self.source
    }

    /// Returns the wrapped source, to change its settings.
    pub const fn inner_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// Returns the impairment of the frames, to read its counters.
    pub const fn impairment(&self) -> &Impairment {
        &self.impairment
    }

    /// Receives at most `most` frames from the wrapped source, and passes them to the impairment.
    fn take(&mut self, most: usize) {
        if self.failure.is_none() {
            self.failure = self.source.receive(&mut self.batch, most).err();
            self.batch.drain(..).for_each(|frame| self.impairment.push(&frame));
        }
    }

    /// Appends at most `most` frames that the impairment has released to `batch`. Returns their number.
    fn give(&mut self, batch: &mut Vec<Frame<S::Buffer>>, most: usize) -> usize {
        let now = (self.clock)();
        for given in 0..most {
            let Some(frame) = self.impairment.pop(now) else { return given };
            self.given.frames += 1;
            self.given.bytes += frame.bytes.len() as u64;
            batch.push(frame.map_bytes(Into::into));
        }
        most
    }
}

impl<S: FrameSource<Buffer: From<Vec<u8>>>, C: FnMut() -> Instant> FrameSource
    for ImpairedSource<S, C>
{
    type Buffer = S::Buffer;

    fn capabilities(&self) -> SourceCapabilities {
        self.source.capabilities()
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<S::Buffer>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        // Due frames go first. While they fill the budget, other frames wait in the device, which has its own
        // limit.
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

    fn attend(&mut self) {
        self.source.attend();
    }
}

#[cfg(unix)]
impl<S: FrameSource + crate::Descriptors, C> crate::Descriptors for ImpairedSource<S, C> {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(std::os::fd::BorrowedFd<'f>)) {
        self.source.visit_descriptors(visit);
    }
}
