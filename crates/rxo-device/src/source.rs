//! Where frames come from.

use rxo_frame::{Frame, Instant};

use crate::middleware::ImpairmentCounters;
use crate::{DeviceError, SourceCapabilities};

/// Something that gives frames in batches.
pub trait FrameSource {
    /// What holds a frame's bytes; dropping it gives the memory back to the device.
    type Buffer: AsRef<[u8]>;

    /// What the source says about its frames. Fixed while it lives.
    fn capabilities(&self) -> SourceCapabilities;

    /// Takes at most `budget` frames from the device, in order of arrival and without waiting, and
    /// appends them to `batch`. Returns how many it appended. A frame that the source discards (one
    /// that came cut short) counts against the budget, so that a call is bounded; therefore 0 means
    /// that nothing is there now or that only discarded frames were.
    ///
    /// # Errors
    /// If the device is gone or refuses; frames already appended stay valid.
    fn receive(
        &mut self,
        batch: &mut Vec<Frame<Self::Buffer>>,
        budget: usize,
    ) -> Result<usize, DeviceError>;

    /// Totals since the source was opened.
    fn counters(&mut self) -> SourceCounters;

    /// How many frames may be kept at a time before the source has nothing to put others into;
    /// `None`: its frames are on their own. A ring is stopped by one frame that is kept for a whole
    /// lap.
    fn lends(&self) -> Option<usize> {
        None
    }

    /// Tells the source, once and before the first frame, that frames may be kept while the next are
    /// waited for. A ring that is shared with the system shows its newest frame as unread for so long.
    fn expect_holds(&mut self) {}

    /// Whether a wait for the source would end at once although it has nothing to give, because it
    /// lacks memory that somebody keeps. Whoever waits then asks again after a moment.
    fn is_starved(&self) -> bool {
        false
    }

    /// When the source has something to give although nothing arrives; `None`: never. A device has
    /// no such time; a source that holds frames back has, and who waits must not wait longer.
    fn poll_at(&self) -> Option<Instant> {
        None
    }
}

/// A source behind a pointer: one type for devices of every kind. The dispatch is once a batch.
impl<S: FrameSource + ?Sized> FrameSource for Box<S> {
    type Buffer = S::Buffer;

    fn capabilities(&self) -> SourceCapabilities {
        (**self).capabilities()
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<S::Buffer>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        (**self).receive(batch, budget)
    }

    fn counters(&mut self) -> SourceCounters {
        (**self).counters()
    }

    fn lends(&self) -> Option<usize> {
        (**self).lends()
    }

    fn expect_holds(&mut self) {
        (**self).expect_holds();
    }

    fn is_starved(&self) -> bool {
        (**self).is_starved()
    }

    fn poll_at(&self) -> Option<Instant> {
        (**self).poll_at()
    }
}

/// What a source has given and lost, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounters {
    /// Frames given.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames the device had no room for (a ring's overflow): lost before us.
    pub ring_drops: u64,
    /// Frames that came cut short and were therefore not given.
    pub truncated: u64,
    /// What middleware did to frames on purpose; all zeros without any.
    pub impaired: ImpairmentCounters,
}
