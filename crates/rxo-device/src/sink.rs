//! Where packets go.

use rxo_frame::Gather;

use crate::{DeviceError, SinkCapabilities};

/// Something that takes packets in batches.
pub trait FrameSink {
    /// What the sink accepts. Fixed while it lives.
    fn capabilities(&self) -> SinkCapabilities;

    /// Sends a batch in order, and never waits. A packet that the system refuses as a whole is sent
    /// as the frames it stands for; one that cannot be sent at all is counted, and the rest still
    /// goes. A device without room leaves the rest with the sink, which keeps a copy as far as it has
    /// memory for it; see [`FrameSink::is_blocked`]. When this returns, the pieces are no longer used.
    ///
    /// # Errors
    /// When the device is gone; what was not sent is counted as dropped.
    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError>;

    /// Totals since the sink was opened.
    fn counters(&self) -> SinkCounters;

    /// Whether the sink keeps packets for which the device had no room. Its owner then takes nothing
    /// more for it, waits until the device can be written to, and calls [`FrameSink::resume`].
    fn is_blocked(&self) -> bool {
        false
    }

    /// Sends what is kept, in order, as far as the device has room. Never waits.
    ///
    /// # Errors
    /// When the device is gone; what was kept is counted as dropped.
    fn resume(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Drops what is kept, and counts it: nobody will call [`FrameSink::resume`] any more.
    fn abandon(&mut self) {}
}

/// What a sink has sent and lost, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkCounters {
    /// Packets handed to the system (an aggregate is one).
    pub packets: u64,
    /// Frames as they had arrived that those stood for; of a large send, the segments it is to become.
    pub frames: u64,
    /// Bytes handed to the system.
    pub bytes: u64,
    /// System calls (or submissions) made for them.
    pub submissions: u64,
    /// Aggregates refused by the system and sent as single frames instead.
    pub fallbacks: u64,
    /// Packets that could not be sent at all.
    pub dropped: u64,
    /// Frames as they had arrived that those stood for. What a sink was given is `frames`, these, and
    /// what it keeps.
    pub dropped_frames: u64,
}
