//! The trait for sources, which provide frames.

use rxo_frame::{Frame, FrameBuffer, Instant};

use crate::middleware::{ImpairmentCounters, WireCounters};
use crate::{DeviceError, Look, Looked, SourceCapabilities, Verdict};

/// A source that provides frames in batches.
pub trait FrameSource {
    /// The memory of a frame. Dropping it returns the memory to the device.
    type Buffer: FrameBuffer;

    /// Returns the properties of the frames. Constant during the source's lifetime.
    fn capabilities(&self) -> SourceCapabilities;

    /// Takes at most `budget` frames from the device, in order of arrival and without waiting, and appends them
    /// to `batch`. Returns the number appended. A result below `budget` means that no more frames are available
    /// now, which tells the worker that the device's queue is empty. Truncated frames are discarded. Their
    /// number per call is limited, so that a peer cannot keep the worker busy with them.
    ///
    /// # Errors
    /// If the device was removed or the system refuses; frames already appended stay valid.
    fn receive(
        &mut self,
        batch: &mut Vec<Frame<Self::Buffer>>,
        budget: usize,
    ) -> Result<usize, DeviceError>;

    /// Takes at most `budget` frames like [`FrameSource::receive`], but calls `look` with each of them first,
    /// in order of arrival, and appends only the frames that `look` does not consume. The default
    /// implementation receives the frames first. A source may instead pass each frame in the device's memory,
    /// and free the memory of a consumed frame before it passes the next frame. Fewer than `budget` frames
    /// ([`Looked::frames`]) mean that no more frames are available now.
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

    /// Returns the counters of the source since it was opened.
    fn counters(&mut self) -> SourceCounters;

    /// Returns the number of frames that have arrived at the device since the source was opened, as counted by
    /// the system, including waiting and lost frames. `None` if the system has no such count. May be a system
    /// call.
    fn arrived(&mut self) -> Option<u64> {
        None
    }

    /// Returns `true` if the device merges frames, so the source receives fewer frames than arrive. Call this
    /// only if frames seem to be missing, because the system may take long to answer.
    fn gives_fewer(&mut self) -> bool {
        false
    }

    /// Returns the number of frames that the owner may hold at a time before the source has no memory for
    /// further frames; `None` if there is no limit. A ring also stops if a single frame is held for a whole lap
    /// of the ring.
    fn lends(&self) -> Option<usize> {
        None
    }

    /// Returns the number of frames of MTU size that the device stores until they are received; further frames
    /// are lost. `None` if the number is unknown, or if senders wait for free space.
    fn queue_frames(&self) -> Option<usize> {
        None
    }

    /// Announces that the owner may hold frames while it waits for more. Such an owner must call this once,
    /// before the first frame. Otherwise the system reports a shared ring as readable while its newest frame is
    /// held, and each wait returns at once.
    fn expect_holds(&mut self) {}

    /// Returns `true` if the source has no frame because all its memory is held. A wait for the source would
    /// return at once, so call `receive` again after a short time instead.
    fn is_starved(&self) -> bool {
        false
    }

    /// Returns the time at which the source will have a frame even if nothing arrives; `None` for never. Do not
    /// wait for the source beyond this time. Only sources that delay frames have such a time.
    fn poll_at(&self) -> Option<Instant> {
        None
    }

    /// Returns the number of times that the peer behind the device, such as a guest, was removed or replaced.
    /// When this number increases, the owner should discard state about the peer, such as its addresses. 0 for a
    /// device that does not detect this.
    fn peers_gone(&self) -> u64 {
        0
    }

    /// Does periodic work that the device needs even if no frames are received, such as answering messages of a
    /// virtual machine monitor. Call this instead of [`FrameSource::receive`] while no frames are to be
    /// received. The call is cheap. For most devices it does nothing.
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
    /// Counters of a source since it was opened.
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
        /// The number of frames whose metadata is wrong (a GSO kind that does not match the headers, a checksum
        /// field outside the frame), plus the number of times that the other side of a shared ring violated the
        /// rules of the ring. None of these frames was passed to the worker.
        pub invalid: u64,
        /// The number of bytes of received frames that the switch between several guests copied on their way
        /// to this source. A copy that several guests share counts for the first of them. 0 if there is no
        /// switch.
        pub bytes_copied_aside: u64,
        /// Counters of the simulated network impairment that the source applies; all zeros if it applies none.
        pub impaired: ImpairmentCounters,
        /// Counters of the simulated wire, such as the number of frames segmented; all zeros if there is none.
        pub wire: WireCounters,
    }
}
