//! Ends of a switch port: the source and the sink through which a guest's worker uses the switch in place of a nic.
//!
//! Source and sink may be on another thread than the hub. Contract: neither end waits for the hub, and the hub
//! waits for neither. Frames from the guest for which the lane has no space are kept, at most a batch, and the
//! worker reads no more from the guest until these frames are moved into the lane.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use rxo_device::{
    Descriptors, DeviceError, FrameSink, FrameSource, SinkCapabilities, SinkCounters,
    SourceCapabilities, SourceCounters,
};
use rxo_frame::{Frame, Gather, Instant};

use super::bell::Door;
use super::lane::{LaneIn, LaneOut, LaneSize, PortBuffer, lane};
use crate::switch::Tagged;

/// The state that the hub and a guest's worker share about the guest's port. Each number is written by one
/// thread only.
#[derive(Default)]
pub(super) struct PortState {
    /// The wake-up of the guest's worker: the hub wakes the worker when the worker waits for frames or for free space.
    pub(super) door: Door,
    /// The number of times that the guest's worker has checked its port.
    pub(super) turns: AtomicU64,
    /// `true` if frames from the guest wait for free space in the lane, the queue to the hub.
    pub(super) wants_room: AtomicBool,
    /// Frames for the guest that were lost because the lane was full, or the guest hung.
    pub(super) lost: AtomicU64,
    /// The number of bytes copied for frames to the guest.
    pub(super) copied_bytes: AtomicU64,
    /// The number of the guest's frames that were sent to no port, or not to the nic because the nic had no space.
    pub(super) refused: AtomicU64,
    pub(super) refused_bytes: AtomicU64,
    /// Frames from the guest that waited, or were forwarded to fewer ports, because of its budget.
    pub(super) over_budget: AtomicU64,
    /// The number of times that the guest's worker did not check its port in time although frames were
    /// waiting.
    pub(super) stalls: AtomicU64,
    /// The number of machines that have left the guest's device.
    gone: AtomicU64,
}

impl PortState {
    /// Records the number of machines that have left the guest's device. Called by the guest's worker.
    pub(super) fn note_gone(&self, count: u64) {
        self.gone.store(count, Ordering::Relaxed);
    }

    /// Returns the number of machines that have left the guest's device, as last recorded.
    pub(super) fn gone(&self) -> u64 {
        self.gone.load(Ordering::Relaxed)
    }
}

/// Adds `more` to a number that only this thread writes.
pub(super) fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// Receives the frames that the switch forwards to a guest, in buffers of type `B`.
pub struct PortSource<B> {
    lane: LaneOut,
    state: Arc<PortState>,
    capabilities: SourceCapabilities,
    bytes: u64,
    /// `true` if the worker has announced that it may wait, so that the hub wakes it after putting a frame
    /// into the lane.
    is_armed: bool,
    buffer: PhantomData<fn() -> B>,
}

/// Passes the frames from a guest to the switch.
pub struct PortSink {
    lane: LaneIn,
    state: Arc<PortState>,
    hub: Arc<Door>,
    capabilities: SinkCapabilities,
    /// The number of bytes of all frames that were put into the lane so far.
    bytes: u64,
    /// The number of bytes copied for frames from the guest; a byte copied twice counts twice.
    copied_bytes: u64,
    /// The frames for which the lane, the queue to the hub, had no space, oldest first.
    kept: VecDeque<Frame<Vec<u8>>>,
    /// The number of frames that this sink has dropped.
    abandoned: u64,
}

/// The ends of a guest's port that the hub, the loop with the nic and the switch, uses.
pub(super) struct HubEnds {
    pub(super) to_guest: LaneIn,
    pub(super) from_guest: LaneOut,
    pub(super) state: Arc<PortState>,
}

/// Maximum number of frames that wait for a guest: several batches of the nic, because several guests may send
/// to the same guest.
pub(super) const MOST_FRAMES: usize = 1_024;
/// Maximum number of frames from a guest that wait for the hub, which passes on 64 in a turn. The sender
/// could not see the length of a longer queue.
pub(super) const MOST_FROM_GUEST: usize = 256;
/// Maximum number of times that a call checks again for frames that arrived while it prepared to wait.
const MOST_LOOKS: usize = 4;

/// Creates a port. Returns the hub's ends and those of the guest's worker. `nic` has the capabilities of the
/// nic.
pub(super) fn port<B>(
    hub: &Arc<Door>,
    nic: (SourceCapabilities, SinkCapabilities),
) -> (HubEnds, PortSource<B>, PortSink) {
    let (of_source, of_sink) = nic;
    let (to_guest, frames) = lane(LaneSize::of(MOST_FRAMES, of_source.mtu));
    let (lane, from_guest) = lane(LaneSize::of(MOST_FROM_GUEST, of_sink.mtu));
    let state = Arc::<PortState>::default();
    let source = PortSource {
        lane: frames,
        state: Arc::clone(&state),
        // Frames of other guests may be GSO frames, whatever the nic's are.
        capabilities: SourceCapabilities { gives_gso: true, ..of_source },
        bytes: 0,
        is_armed: false,
        buffer: PhantomData,
    };
    let sink = PortSink {
        lane,
        state: Arc::clone(&state),
        hub: Arc::clone(hub),
        capabilities: of_sink,
        bytes: 0,
        copied_bytes: 0,
        kept: VecDeque::new(),
        abandoned: 0,
    };
    (HubEnds { to_guest, from_guest, state }, source, sink)
}

impl<B> PortSource<B> {
    /// Drops the frames that wait in the lane, and counts them as lost. Call it only when the hub puts no
    /// more frames into the lane.
    pub(super) fn clear(&mut self) {
        self.lane.clear();
    }

    /// Returns the number of frames that were taken out of the lane, plus those that wait in it.
    pub(super) fn accounted(&self) -> u64 {
        self.lane.taken + self.lane.len() as u64
    }

    fn disarm(&mut self) {
        if std::mem::take(&mut self.is_armed) {
            self.state.door.disarm();
        }
    }
}

impl<B: PortBuffer> FrameSource for PortSource<B> {
    type Buffer = B;

    fn capabilities(&self) -> SourceCapabilities {
        self.capabilities
    }

    fn receive(&mut self, batch: &mut Vec<Frame<B>>, budget: usize) -> Result<usize, DeviceError> {
        add(&self.state.turns, 1);
        let before = batch.len();
        for _ in 0..MOST_LOOKS {
            self.disarm();
            while batch.len() - before < budget {
                let Some(frame) = self.lane.pop() else { break };
                self.bytes += frame.bytes().len() as u64;
                batch.push(frame.map_bytes(|bytes| bytes.into_buffer()));
            }
            if batch.len() - before == budget {
                break;
            }
            self.state.door.arm();
            self.is_armed = true;
            if self.lane.is_empty() {
                break;
            }
        }
        Ok(batch.len() - before)
    }

    fn counters(&mut self) -> SourceCounters {
        SourceCounters {
            frames: self.lane.taken - self.lane.dropped,
            bytes: self.bytes,
            ring_drops: self.state.lost.load(Ordering::Relaxed) + self.lane.dropped,
            bytes_copied_aside: self.state.copied_bytes.load(Ordering::Relaxed),
            ..SourceCounters::default()
        }
    }

    /// Returns a time in the past if frames wait, because the system may report no event for them; otherwise `None`.
    fn poll_at(&self) -> Option<Instant> {
        (!self.lane.is_empty()).then_some(Instant::ZERO)
    }

    fn attend(&mut self) {
        add(&self.state.turns, 1);
    }
}

impl<B> Descriptors for PortSource<B> {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        self.state.door.visit_descriptors(visit);
    }
}

impl PortSink {
    /// Returns the number of frames that were put into the lane so far.
    pub(super) const fn put(&self) -> u64 {
        self.lane.put
    }

    fn push(&mut self, frame: Frame<&[u8]>) {
        let bytes = frame.bytes.len() as u64;
        self.copied_bytes += bytes;
        if self.kept.is_empty() && self.lane.push(&Tagged::whole(&frame)) {
            self.bytes += bytes;
        } else {
            self.kept.push_back(frame.with_bytes(frame.bytes.to_vec()));
        }
    }

    /// Moves the frames that wait for free space into the lane, as far as the lane has space.
    fn move_kept(&mut self) {
        while let Some(frame) = self.kept.front()
            && self.lane.push(&Tagged::whole(&frame.borrowed()))
        {
            let bytes = frame.bytes.len() as u64;
            self.bytes += bytes;
            self.copied_bytes += bytes;
            self.kept.pop_front();
        }
        self.state.wants_room.store(!self.kept.is_empty(), Ordering::Relaxed);
    }
}

impl FrameSink for PortSink {
    fn capabilities(&self) -> SinkCapabilities {
        self.capabilities
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        batch.for_each(|packet| packet.for_each_frame(|frame| self.push(frame)));
        if !self.kept.is_empty() {
            self.state.wants_room.store(true, Ordering::Relaxed);
            // The hub may have freed space just before.
            fence(Ordering::SeqCst);
            self.move_kept();
        }
        self.hub.wake();
        Ok(())
    }

    /// Returns the counters of the sink. A frame in the lane counts as sent until the hub refuses it.
    fn counters(&self) -> SinkCounters {
        let PortState { refused, refused_bytes, .. } = &*self.state;
        let refused = refused.load(Ordering::Relaxed);
        let sent = self.lane.put - refused;
        SinkCounters {
            packets: sent,
            frames: sent,
            bytes: self.bytes.saturating_sub(refused_bytes.load(Ordering::Relaxed)),
            dropped: refused + self.abandoned,
            dropped_frames: refused + self.abandoned,
            bytes_copied_aside: self.copied_bytes,
            ..SinkCounters::default()
        }
    }

    fn is_blocked(&self) -> bool {
        !self.kept.is_empty()
    }

    fn kept_frames(&self) -> u64 {
        self.kept.len() as u64
    }

    fn resume(&mut self) -> Result<(), DeviceError> {
        self.move_kept();
        self.hub.wake();
        Ok(())
    }

    fn abandon(&mut self) {
        self.abandoned += self.kept.drain(..).count() as u64;
    }
}

/// Visits no descriptor: the source's descriptor also reports free space, because an eventfd becomes
/// readable, never writable.
impl Descriptors for PortSink {
    fn visit_descriptors<'f>(&'f self, _: &mut dyn FnMut(BorrowedFd<'f>)) {}
}
