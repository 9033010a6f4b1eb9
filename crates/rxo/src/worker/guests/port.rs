//! Ends of a switch port: the source and the sink through which a guest's worker uses the switch in place of a nic.
//!
//! They may be on another thread than the hub, and have lanes to and from several hubs, each on a thread. The
//! hub for a frame of the guest is that of its flow ([`queue_of`]), so the frames of a flow stay in order.
//! Contract: neither end waits for a hub, and no hub waits for either. Frames from the guest for which their
//! lane has no space are kept, at most a batch, and the worker reads no more from the guest until they are
//! moved.

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
use rxo_wire::queue_of;

use super::budget::{Budget, Meters};
use super::lane::{LaneIn, LaneOut, LaneSize, PortBuffer, lane};
use super::wake_up::WakeUp;
use crate::switch::Tagged;

/// The state that the hubs and a guest's worker share about the guest's port. Each number is written by one
/// thread only.
pub(super) struct PortState {
    /// The wake-up of the guest's worker: a hub knocks when the worker waits for frames or for free space.
    pub(super) wake_up: WakeUp,
    /// The number of times that the guest's worker has checked its port.
    pub(super) turns: AtomicU64,
    /// `true` if the user was told that the guest's thread hangs, and not yet that it goes on.
    pub(super) is_said_to_hang: AtomicBool,
    /// The number of machines that have left the guest's device.
    gone: AtomicU64,
    /// The numbers of the lanes, in the order of the hubs.
    lanes: Box<[Arc<LaneState>]>,
}

/// The numbers of a guest's lanes to and from one hub. Alone in its cache lines, because each hub writes its own.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct LaneState {
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

    /// Returns the sum of a number of all lanes.
    pub(super) fn sum(&self, number: impl Fn(&LaneState) -> &AtomicU64) -> u64 {
        self.lanes.iter().map(|lane| number(lane).load(Ordering::Relaxed)).sum()
    }

    /// Returns the number of stalls that the hub found which found most: several find the same.
    pub(super) fn stalls(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.stalls.load(Ordering::Relaxed)).max().unwrap_or(0)
    }
}

/// Adds `more` to a number that only this thread writes.
pub(super) fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// Receives the frames that the switch forwards to a guest, in buffers of type `B`.
pub struct PortSource<B> {
    /// The lanes from all hubs.
    lanes: Vec<LaneOut>,
    /// The index of the lane from which the next call takes frames first.
    first: usize,
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
    /// The lanes to all hubs.
    lanes: Vec<LaneIn>,
    state: Arc<PortState>,
    /// The wake-ups of the hubs.
    hubs: Vec<Arc<WakeUp>>,
    /// For each hub, `true` if it has got a frame since it was last woken.
    news: Vec<bool>,
    capabilities: SinkCapabilities,
    /// The number of bytes of all frames that were put into a lane so far.
    bytes: u64,
    /// The number of bytes copied for frames from the guest; a byte copied twice counts twice.
    copied_bytes: u64,
    /// The frames for which a lane, the queue to a hub, had no space, oldest first, with the index of the lane.
    kept: VecDeque<(usize, Frame<Vec<u8>>)>,
    /// The number of frames that this sink has dropped.
    abandoned: u64,
}

/// The ends of a guest's port that the hub, the loop with the nic and the switch, uses.
pub(super) struct HubEnds {
    pub(super) to_guest: LaneIn,
    pub(super) from_guest: LaneOut,
    pub(super) state: Arc<PortState>,
    pub(super) lane: Arc<LaneState>,
    pub(super) meters: Meters,
}

/// Maximum number of frames that wait for a guest: several batches of the nic, because several guests may send
/// to the same guest.
pub(super) const MOST_FRAMES: usize = 1_024;
/// Maximum number of frames from a guest that wait for the hub, which passes on 64 in a turn. The sender
/// could not see the length of a longer queue.
pub(super) const MOST_FROM_GUEST: usize = 256;
/// Maximum number of times that a call checks again for frames that arrived while it prepared to wait.
const MOST_CHECKS: usize = 4;

/// Creates a port with lanes to and from each of the hubs that have these wake-ups. Returns the ends of each
/// hub, and those of the guest's worker. `nic` has the capabilities of the nic.
pub(super) fn port<B>(
    hubs: &[Arc<WakeUp>],
    nic: (SourceCapabilities, SinkCapabilities),
) -> (Vec<HubEnds>, PortSource<B>, PortSink) {
    let (of_source, of_sink) = nic;
    let state = Arc::new(PortState {
        wake_up: WakeUp::default(),
        turns: AtomicU64::new(0),
        is_said_to_hang: AtomicBool::new(false),
        gone: AtomicU64::new(0),
        lanes: hubs.iter().map(|_| Arc::default()).collect(),
    });
    let meters = Meters::new(Budget::default());
    let (mut ends, mut from_hubs, mut to_hubs) = (Vec::new(), Vec::new(), Vec::new());
    for hub in 0..hubs.len() {
        let (to_guest, from_hub) = lane(LaneSize::of(MOST_FRAMES, of_source.mtu));
        let (to_hub, from_guest) = lane(LaneSize::of(MOST_FROM_GUEST, of_sink.mtu));
        let (state, lane) = (Arc::clone(&state), Arc::clone(&state.lanes[hub]));
        ends.push(HubEnds { to_guest, from_guest, state, lane, meters: meters.clone() });
        from_hubs.push(from_hub);
        to_hubs.push(to_hub);
    }
    let source = PortSource {
        lanes: from_hubs,
        first: 0,
        state: Arc::clone(&state),
        // Frames of other guests may be GSO frames, whatever the nic's are.
        capabilities: SourceCapabilities { gives_gso: true, ..of_source },
        bytes: 0,
        is_armed: false,
        buffer: PhantomData,
    };
    let sink = PortSink {
        lanes: to_hubs,
        state,
        hubs: hubs.to_vec(),
        news: vec![false; hubs.len()],
        capabilities: of_sink,
        bytes: 0,
        copied_bytes: 0,
        kept: VecDeque::new(),
        abandoned: 0,
    };
    (ends, source, sink)
}

impl<B> PortSource<B> {
    /// Drops the frames that wait in the lanes, and counts them as lost. Call it only when no hub puts more
    /// frames into its lane.
    pub(super) fn clear(&mut self) {
        self.lanes.iter_mut().for_each(LaneOut::clear);
    }

    /// Returns the number of frames that were taken out of the lanes, plus those that wait in them.
    pub(super) fn accounted(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.taken + lane.len() as u64).sum()
    }

    fn is_empty(&self) -> bool {
        self.lanes.iter().all(LaneOut::is_empty)
    }

    /// Moves frames from the lanes to `batch`, until it has `full` frames or the lanes are empty.
    fn take(&mut self, batch: &mut Vec<Frame<B>>, full: usize)
    where
        B: PortBuffer,
    {
        let (before, from) = self.lanes.split_at_mut(self.first);
        for lane in from.iter_mut().chain(before) {
            while batch.len() < full {
                let Some(frame) = lane.pop() else { break };
                self.bytes += frame.bytes().len() as u64;
                batch.push(frame.map_bytes(|bytes| bytes.into_buffer()));
            }
        }
    }

    fn disarm(&mut self) {
        if std::mem::take(&mut self.is_armed) {
            self.state.wake_up.disarm();
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
        for _ in 0..MOST_CHECKS {
            self.disarm();
            self.take(batch, before + budget);
            if batch.len() - before == budget {
                break;
            }
            self.state.wake_up.arm();
            self.is_armed = true;
            if self.is_empty() {
                break;
            }
        }
        // A hub with many frames keeps those of others waiting for a batch at most.
        self.first = (self.first + 1) % self.lanes.len();
        Ok(batch.len() - before)
    }

    fn counters(&mut self) -> SourceCounters {
        let dropped: u64 = self.lanes.iter().map(|lane| lane.dropped).sum();
        let taken: u64 = self.lanes.iter().map(|lane| lane.taken).sum();
        SourceCounters {
            frames: taken - dropped,
            bytes: self.bytes,
            ring_drops: self.state.sum(|lane| &lane.lost) + dropped,
            bytes_copied_aside: self.state.sum(|lane| &lane.copied_bytes),
            ..SourceCounters::default()
        }
    }

    /// Returns a time in the past if frames wait, because the system may report no event for them; otherwise `None`.
    fn poll_at(&self) -> Option<Instant> {
        (!self.is_empty()).then_some(Instant::ZERO)
    }

    fn attend(&mut self) {
        add(&self.state.turns, 1);
    }
}

impl<B> Descriptors for PortSource<B> {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        self.state.wake_up.visit_descriptors(visit);
    }
}

impl PortSink {
    /// Returns the number of frames that were put into the lanes so far.
    pub(super) fn put(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.put).sum()
    }

    /// Returns the index of the lane for a frame: that of its flow.
    fn lane_of(&self, frame: &[u8]) -> usize {
        match self.lanes.len() {
            1 => 0,
            count => queue_of(frame, count as u32) as usize,
        }
    }

    fn push(&mut self, frame: Frame<&[u8]>) {
        let (bytes, n) = (frame.bytes.len() as u64, self.lane_of(frame.bytes));
        self.copied_bytes += bytes;
        if self.kept.is_empty() && self.lanes[n].push(&Tagged::whole(&frame)) {
            self.bytes += bytes;
            self.news[n] = true;
        } else {
            self.kept.push_back((n, frame.with_bytes(frame.bytes.to_vec())));
        }
    }

    /// Moves the frames that wait for free space into the lanes, as far as the lane of the oldest one has space.
    fn move_kept(&mut self) {
        while let Some((n, frame)) = self.kept.front() {
            let wants_room = &self.state.lanes[*n].wants_room;
            if !wants_room.load(Ordering::Relaxed) {
                wants_room.store(true, Ordering::Relaxed);
                // The hub may have freed space just before.
                fence(Ordering::SeqCst);
            }
            if !self.lanes[*n].push(&Tagged::whole(&frame.borrowed())) {
                return;
            }
            wants_room.store(false, Ordering::Relaxed);
            let bytes = frame.bytes.len() as u64;
            self.bytes += bytes;
            self.copied_bytes += bytes;
            self.news[*n] = true;
            self.kept.pop_front();
        }
    }

    /// Wakes the hubs that have got frames.
    fn wake(&mut self) {
        let hubs = self.hubs.iter().zip(&mut self.news);
        hubs.filter_map(|(hub, has)| std::mem::take(has).then_some(hub)).for_each(|hub| hub.wake());
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
        self.move_kept();
        self.wake();
        Ok(())
    }

    /// Returns the counters of the sink. A frame in the lane counts as sent until the hub refuses it.
    fn counters(&self) -> SinkCounters {
        let refused = self.state.sum(|lane| &lane.refused);
        let sent = self.put() - refused;
        SinkCounters {
            packets: sent,
            frames: sent,
            bytes: self.bytes.saturating_sub(self.state.sum(|lane| &lane.refused_bytes)),
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
        self.wake();
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
