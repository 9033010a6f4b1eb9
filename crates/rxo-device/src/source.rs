//! The trait of everything that gives frames.

use rxo_frame::{Frame, FrameBuffer, Instant};

use crate::middleware::{ImpairmentCounters, WireCounters};
use crate::{DeviceError, Look, Looked, SourceCapabilities, Verdict};

/// Something that gives frames in batches.
pub trait FrameSource {
    /// The memory of a frame. Dropping it gives the memory back to the device.
    type Buffer: FrameBuffer;

    /// What the source says about its frames. Fixed while it lives.
    fn capabilities(&self) -> SourceCapabilities;

    /// Takes at most `budget` frames from the device, in order of arrival and without waiting, and
    /// appends them to `batch`. Returns how many it appended. Fewer than `budget` means that nothing
    /// more is there now: the worker relies on it to tell a standing queue from an empty one. Frames
    /// that the source discards (those that came cut short) are skipped, so many in one call that a
    /// peer that sends nothing else cannot keep the worker in it.
    ///
    /// # Errors
    /// If the device is gone or refuses; frames already appended stay valid.
    fn receive(
        &mut self,
        batch: &mut Vec<Frame<Self::Buffer>>,
        budget: usize,
    ) -> Result<usize, DeviceError>;

    /// Takes at most `budget` frames as [`FrameSource::receive`] does, but lets `look` see each of them first,
    /// in order of arrival, and appends only those that it does not consume. A source that can shows a frame
    /// where it lies and gives the memory of a consumed one back before the next; by default frames are
    /// received and then looked at. Fewer than `budget` frames ([`Looked::frames`]) mean that nothing more is
    /// there now.
    ///
    /// # Errors
    /// As [`FrameSource::receive`]; frames appended by then may not have been looked at.
    fn receive_past(
        &mut self,
        batch: &mut Vec<Frame<Self::Buffer>>,
        budget: usize,
        look: Look<'_>,
    ) -> Result<Looked, DeviceError> {
        let before = batch.len();
        let received = self.receive(batch, budget)?;
        let is_consumed =
            |frame: &mut Frame<Self::Buffer>| look(frame.borrowed()) == Verdict::Consumed;
        let consumed = batch.extract_if(before.., is_consumed).count();
        Ok(Looked { given: received - consumed, consumed, in_place: 0 })
    }

    /// Totals since the source was opened.
    fn counters(&mut self) -> SourceCounters;

    /// How many frames have arrived at the device since the source was opened, as the system counts them: given, waiting
    /// and lost ones. `None` if the system does not say. It may be a system call.
    fn arrived(&mut self) -> Option<u64> {
        None
    }

    /// Whether the device merges frames, so that fewer are given than arrive. Asked only when frames seem to be missing,
    /// because the system may take long to answer.
    fn gives_fewer(&mut self) -> bool {
        false
    }

    /// How many frames may be held at a time before the source runs out of memory for others; `None`
    /// if there is no limit. A single frame that is held for a whole lap stops a ring.
    fn lends(&self) -> Option<usize> {
        None
    }

    /// How many frames up to the MTU the device keeps until they are received; those that find no room are lost.
    /// `None` if that is not known, or whoever sends waits for room.
    fn queue_frames(&self) -> Option<usize> {
        None
    }

    /// Tells the source that its owner may hold frames while it waits for the next. Call it once,
    /// before the first frame. Otherwise a ring shared with the system counts as readable for as long
    /// as its newest frame is held, and a wait would not wait.
    fn expect_holds(&mut self) {}

    /// Whether the source has nothing to give because all its memory is held. A wait for it would
    /// end at once; ask it again after a moment instead.
    fn is_starved(&self) -> bool {
        false
    }

    /// When the source will have something to give even if nothing arrives; `None` for never. Do not
    /// wait for it beyond this time. Sources that delay frames have such a time; devices have none.
    fn poll_at(&self) -> Option<Instant> {
        None
    }

    /// Does what the device needs although nobody reads frames: answers to messages of a machine monitor,
    /// say. Call it instead of [`FrameSource::receive`] while frames are not wanted. It gives none, and
    /// it is cheap to call often. Most devices need nothing.
    fn attend(&mut self) {}
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

    fn receive_past(
        &mut self,
        batch: &mut Vec<Frame<S::Buffer>>,
        budget: usize,
        look: Look<'_>,
    ) -> Result<Looked, DeviceError> {
        (**self).receive_past(batch, budget, look)
    }

    fn counters(&mut self) -> SourceCounters {
        (**self).counters()
    }

    fn arrived(&mut self) -> Option<u64> {
        (**self).arrived()
    }

    fn gives_fewer(&mut self) -> bool {
        (**self).gives_fewer()
    }

    fn lends(&self) -> Option<usize> {
        (**self).lends()
    }

    fn queue_frames(&self) -> Option<usize> {
        (**self).queue_frames()
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

    fn attend(&mut self) {
        (**self).attend();
    }
}

rxo_frame::counters! {
    /// Totals of a source since it was opened.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SourceCounters {
        /// Frames given.
        pub frames: u64,
        /// Their bytes.
        pub bytes: u64,
        /// Frames lost before the source because the device's ring was full.
        pub ring_drops: u64,
        /// Frames that arrived cut short, which the source discarded.
        pub truncated: u64,
        /// Frames that are not what was said of them (a GSO frame of a kind that it neither is nor contains, a checksum
        /// outside), and how often the other side of a ring broke a rule: with a chain of buffers, whether there was a frame
        /// in it or it was to receive one, or with the header of a frame. Nothing of it was given.
        pub invalid: u64,
        /// Bytes of those frames that were copied aside on the way here: between guests, for several guests, to
        /// remove a tag, or because the guest had no room. 0 if there is no switch.
        pub bytes_copied_aside: u64,
        /// What middleware did to frames on purpose; all zeros without middleware.
        pub impaired: ImpairmentCounters,
        /// What a wire did to their form; all zeros without one.
        pub wire: WireCounters,
    }
}
