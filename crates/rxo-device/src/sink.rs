//! The trait for sinks, which accept packets.

use rxo_frame::{Gather, Load};

use crate::{DeviceError, SinkCapabilities};

/// A sink that accepts packets in batches.
pub trait FrameSink {
    /// Returns the properties of accepted packets. Constant during the sink's lifetime.
    fn capabilities(&self) -> SinkCapabilities;

    /// Sends a batch in order, without waiting. If the system refuses an aggregate, the sink sends its original
    /// frames instead. It drops and counts a packet that cannot be sent at all, and continues with the next. If
    /// the device is full, the sink keeps copies of the remaining packets, as far as its memory permits; see
    /// [`FrameSink::is_blocked`]. The sink does not use the pieces after this call.
    ///
    /// # Errors
    /// If the device was removed. The sink counts the unsent packets as dropped.
    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError>;

    /// Returns the counters of the sink since it was opened.
    fn counters(&self) -> SinkCounters;

    /// Returns `true` while the sink keeps packets because the device was full. The owner of the sink must then
    /// stop receiving packets for this sink, wait until the device is writable, and call [`FrameSink::resume`].
    fn is_blocked(&self) -> bool {
        false
    }

    /// Returns the number of frames that the sink keeps because the device was full. A sink that keeps packets
    /// must implement this function; otherwise these packets would count as lost.
    fn kept_frames(&self) -> u64 {
        0
    }

    /// Returns the number of packets that the interface has sent or dropped since its creation, as counted by
    /// the system, from all senders. Meaningful only as a difference of two values. `None` while packets are
    /// still queued, or if the system has no such count. May be a system call.
    fn departed(&mut self) -> Option<u64> {
        None
    }

    /// Sends the packets that the sink keeps, in order, until the device is full. Does not wait.
    ///
    /// # Errors
    /// If the device was removed. The sink counts the kept packets as dropped.
    fn resume(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Returns the number of delivered packets that the receiver has not processed yet, including the kept ones;
    /// `None` if the sink cannot determine this number, as on a network. Adaptive hold uses this load: no
    /// segments are held for an idle receiver.
    fn load(&self) -> Option<Load> {
        None
    }

    /// Returns the number of bytes passed to the system that the device has not sent yet. The count includes the
    /// system's overhead per packet. `None` if the sink cannot determine the number, or if packets never wait in
    /// the system. A sender that keeps this number small can still decide which packet is sent next.
    fn queued_bytes(&self) -> Option<u64> {
        None
    }

    /// Drops and counts the packets that the sink keeps. Called instead of a last [`FrameSink::resume`].
    fn abandon(&mut self) {}
}

rxo_frame::counters! {
    /// Counters of a sink since it was opened.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SinkCounters {
        /// The number of packets passed to the system. An aggregate is one packet.
        pub packets: u64,
        /// The number of original frames in the packets passed to the system. A GSO frame counts as its segments.
        pub frames: u64,
        /// The number of bytes passed to the system.
        pub bytes: u64,
        /// The number of bytes of sent packets that this process copied into memory shared with their receiver,
        /// counted once per copy: equal to `bytes` if each byte was copied once. 0 if the system copies the
        /// bytes.
        pub bytes_copied: u64,
        /// The number of bytes of frames copied in addition to `bytes_copied`, because the device was full, or
        /// because a VLAN tag had to be removed. Counted when copied, so the frames may not have been sent.
        pub bytes_copied_aside: u64,
        /// The number of scatter/gather pieces in which the packets were passed to their receiver; 0 if the
        /// system copies the packets.
        pub pieces: u64,
        /// The number of system calls or submissions by which the packets were passed to the system.
        pub submissions: u64,
        /// The number of aggregates that the system refused, and that were sent as single frames instead.
        pub fallbacks: u64,
        /// The number of packets that were not sent.
        pub dropped: u64,
        /// The number of original frames in the dropped packets. `frames`, `dropped_frames` and the kept frames add up
        /// to the frames that the sink received plus `segments_added`.
        pub dropped_frames: u64,
        /// The number of additional segments from GSO frames that the sink segmented because the device cannot:
        /// for each GSO frame, all segments except the first. Each segment counts as a frame.
        pub segments_added: u64,
    }
}
