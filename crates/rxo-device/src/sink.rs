//! The trait of everything that takes packets.

use rxo_frame::{Gather, Load};

use crate::{DeviceError, SinkCapabilities};

/// Something that takes packets in batches.
pub trait FrameSink {
    /// What the sink accepts. Fixed while it lives.
    fn capabilities(&self) -> SinkCapabilities;

    /// Sends a batch in order, without waiting. If the system refuses an aggregate, the sink sends its
    /// original frames instead. It drops and counts a packet that it cannot send at all, and goes on
    /// with the next. If the device has no room, the sink keeps copies of the rest as far as it has
    /// memory; see [`FrameSink::is_blocked`]. The sink does not use the pieces after this returns.
    ///
    /// # Errors
    /// If the device is gone. The sink counts what it did not send as dropped.
    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError>;

    /// Totals since the sink was opened.
    fn counters(&self) -> SinkCounters;

    /// Whether the sink keeps packets for which the device had no room. Its owner must then stop
    /// reading for it, wait until the device can be written to, and call [`FrameSink::resume`].
    fn is_blocked(&self) -> bool {
        false
    }

    /// How many frames the sink keeps because the device had no room. A sink that keeps packets must say so: otherwise
    /// they look like lost ones.
    fn kept_frames(&self) -> u64 {
        0
    }

    /// How many packets the interface has sent or dropped since it was made, as the system counts: all of them, whoever
    /// gave them. Meaningful as the difference of two. `None` while some still wait, or if the system does not say. It may
    /// be a system call.
    fn departed(&mut self) -> Option<u64> {
        None
    }

    /// Sends the kept packets, in order, as far as the device has room. Does not wait.
    ///
    /// # Errors
    /// If the device is gone. The sink counts the kept packets as dropped.
    fn resume(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// How much of what the sink delivered its receiver has not taken yet, the kept packets included;
    /// `None` if the sink cannot know, as on a network. Adaptive hold needs it: nothing is held for an
    /// idle receiver.
    fn load(&self) -> Option<Load> {
        None
    }

    /// Bytes handed to the system that the device has not sent yet, as the system counts them: with the memory that
    /// each packet takes beside its own. `None` if the sink cannot know, or nothing waits behind it. A sender that
    /// keeps this small can still decide what leaves next.
    fn queued_bytes(&self) -> Option<u64> {
        None
    }

    /// Drops and counts the kept packets. Call it instead of a last [`FrameSink::resume`].
    fn abandon(&mut self) {}
}

rxo_frame::counters! {
    /// Totals of a sink since it was opened.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SinkCounters {
        /// Packets handed to the system. An aggregate is one packet.
        pub packets: u64,
        /// Original frames in those packets. A GSO send counts as the segments that it becomes.
        pub frames: u64,
        /// Bytes handed to the system.
        pub bytes: u64,
        /// Bytes of those packets that this process copied into memory shared with their receiver, each as
        /// often as it was copied: `bytes` if each was copied once. 0 if the system copies.
        pub bytes_copied: u64,
        /// Bytes of frames that were copied aside, in addition to `bytes_copied`: because the device had no room, or
        /// to remove a tag. They count when they are copied, so they may not have left.
        pub bytes_copied_aside: u64,
        /// Pieces of memory in which those packets lay before; 0 if the system copies.
        pub pieces: u64,
        /// System calls or submissions made for them.
        pub submissions: u64,
        /// Aggregates that the system refused, and that were sent as single frames instead.
        pub fallbacks: u64,
        /// Packets that were not sent.
        pub dropped: u64,
        /// Original frames in the dropped packets. `frames`, `dropped_frames` and the frames that the sink
        /// keeps add up to the frames it was given and `segments_added`.
        pub dropped_frames: u64,
        /// Segments, without the first of each, that the sink cut GSO frames into because the device does not divide them.
        /// Each segment counts as a frame.
        pub segments_added: u64,
    }
}
