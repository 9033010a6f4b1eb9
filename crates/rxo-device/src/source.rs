//! The trait for everything that provides frames.

use rxo_frame::{Frame, FrameBuffer, Instant};

use crate::middleware::{ImpairmentCounters, WireCounters};
use crate::{DeviceError, Look, Looked, SourceCapabilities, Verdict};

/// A source that provides frames in batches.
pub trait FrameSource {
    /// The memory of a frame. Dropping it returns the memory to the device.
    type Buffer: FrameBuffer;

    /// Returns the properties of the frames. Constant during the source's lifetime.
    fn capabilities(&self) -> SourceCapabilities;

    /// Takes at most `budget` frames from the device, in order of arrival and without waiting, and appends
    /// them to `batch`. Returns the number appended. Fewer than `budget` means that no more frames are
    /// available now: the worker uses this to distinguish a standing queue from an empty one. Truncated
    /// frames are discarded and skipped; their number per call is limited, so that a peer that sends nothing
    /// else cannot keep the worker busy.
    ///
    /// # Errors
    /// If the device was removed or the system refuses; frames already appended stay valid.
    fn receive(
        &mut self,
        batch: &mut Vec<Frame<Self::Buffer>>,
        budget: usize,
    ) -> Result<usize, DeviceError>;

    /// Takes at most `budget` frames like [`FrameSource::receive`], but calls `look` with each of them first,
    /// in order of arrival, and appends only those that it does not consume. If a source can, it passes each
    /// frame in the device's memory, and frees the memory of a consumed frame before the next one; by
    /// default, frames are received first. Fewer than `budget` frames ([`Looked::frames`]) mean that no more
    /// frames are available now.
    ///
    /// # Errors
    /// The errors of [`FrameSource::receive`]; frames appended before may not have been passed to `look`.
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

    /// Returns the totals since the source was opened.
    fn counters(&mut self) -> SourceCounters;

    /// Returns the number of frames that have arrived at the device since the source was opened, as counted
    /// by the system: received, waiting and lost ones. `None` if the system has no such count. May be a
    /// system call.
    fn arrived(&mut self) -> Option<u64> {
        None
    }

    /// Returns `true` if the device merges frames, so that fewer are received than arrive. Called only if
    /// frames seem to be missing, because the system may take long to answer.
    fn gives_fewer(&mut self) -> bool {
        false
    }

    /// Returns the number of frames that may be held at a time before the source runs out of memory for
    /// others; `None` if there is no limit. A ring stops at a single frame that is held for a whole lap.
    fn lends(&self) -> Option<usize> {
        None
    }

    /// Returns the number of frames of MTU size that the device stores until they are received; frames beyond
    /// it are lost. `None` if unknown, or if senders wait for free space.
    fn queue_frames(&self) -> Option<usize> {
        None
    }

    /// Announces that the owner may hold frames while it waits for more. Call it once, before the first
    /// frame. Otherwise a ring shared with the system counts as readable while its newest frame is held, and
    /// a wait would return at once.
    fn expect_holds(&mut self) {}

    /// Returns `true` if the source has no frame because all its memory is held. A wait for it would end at
    /// once; call `receive` again after a moment instead.
    fn is_starved(&self) -> bool {
        false
    }

    /// Returns the time at which the source will have a frame even if nothing arrives; `None` for never. Do
    /// not wait for the source beyond this time. Sources that delay frames have such a time; devices have
    /// none.
    fn poll_at(&self) -> Option<Instant> {
        None
    }

    /// Returns the number of times that the other side of the device has gone, such as the machine of a
    /// guest. State that was learned from that side, such as its addresses, should then be dropped. 0 for a
    /// device that does not detect this.
    fn peers_gone(&self) -> u64 {
        0
    }

    /// Does periodic work that the device needs even if no frames are received, such as answering messages of
    /// a virtual machine monitor. Call it instead of [`FrameSource::receive`] while frames are not wanted.
    /// Returns no frames, and is cheap. Most devices need nothing.
    fn attend(&mut self) {}
}

/// Implements the trait for a boxed source: one type for devices of every kind, with one dynamic call per
/// batch.
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

    fn peers_gone(&self) -> u64 {
        (**self).peers_gone()
    }

    fn attend(&mut self) {
        (**self).attend();
    }
}

rxo_frame::counters! {
    /// Totals of a source since it was opened.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SourceCounters {
        /// The number of received frames.
        pub frames: u64,
        /// The number of bytes of the received frames.
        pub bytes: u64,
        /// The number of frames lost before they reached the source, because the device's ring was full.
        pub ring_drops: u64,
        /// The number of frames that arrived truncated and were discarded.
        pub truncated: u64,
        /// The number of frames whose metadata is wrong (a GSO kind that does not match the headers, a
        /// checksum field outside the frame), plus the number of times that the other side of a shared ring
        /// broke its rules. None of these frames was received.
        pub invalid: u64,
        /// The number of bytes of received frames that the switch between several guests copied on their way
        /// to this source. A copy that several guests share counts for the first of them. 0 if there is no
        /// switch.
        pub bytes_copied_aside: u64,
        /// Totals of the simulated network impairment that the source applies; all zeros if it applies none.
        pub impaired: ImpairmentCounters,
        /// Totals of the work of a simulated wire, such as segmentation; all zeros without a simulated wire.
        pub wire: WireCounters,
    }
}
