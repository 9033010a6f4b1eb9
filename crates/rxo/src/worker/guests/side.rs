//! The hub's side of a guest's port: the ends of its lanes, and its budget.
//!
//! This module is separate from the hub, so that the limits of one guest are in one place. Contract: never
//! waits for the guest.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rxo_frame::{Frame, Instant};

use super::budget::Meters;
use super::lane::{Copied, LaneIn, LaneOut};
use super::port::{HubEnds, LaneState, PortState, add};
use super::watch::{GuestState, HANGS_AFTER, Watch};

/// The state that the hub, the loop with the nic and the switch, keeps of one guest: the ends of its lanes,
/// and its budget.
pub(super) struct Side {
    pub(super) to_guest: LaneIn,
    pub(super) from_guest: LaneOut,
    pub(super) state: Arc<PortState>,
    /// The numbers of the guest's lanes that this hub writes.
    lane: Arc<LaneState>,
    /// The guest's budget, which all hubs share.
    meters: Meters,
    /// The time from which the first frame from the guest may be passed on, once its tokens are reserved; `None` if the
    /// guest has no `rate`, or no frame was at the front since the last one.
    pub(super) due_at: Option<Instant>,
    /// The check that the guest's thread takes the frames that wait for it.
    pub(super) watch: Watch,
    /// `true` if the hub has put a frame into a lane of this guest, or taken one out, since it last woke the
    /// guest's worker.
    has_changes: bool,
    /// Number of machines that had left the guest's device when the switch last forgot the addresses of the
    /// guest's port.
    pub(super) forgotten: u64,
    /// `true` if the guest's worker hangs. Frames for the guest are then dropped, and frames from the guest wait.
    pub(super) is_cut_off: bool,
}

impl Side {
    pub(super) fn new(ends: HubEnds) -> Self {
        let HubEnds { to_guest, from_guest, state, lane, meters } = ends;
        Self {
            to_guest,
            from_guest,
            state,
            lane,
            meters,
            due_at: None,
            watch: Watch::default(),
            has_changes: false,
            forgotten: 0,
            is_cut_off: false,
        }
    }

    /// Replaces the guest's budget.
    pub(super) fn limit(&mut self, meters: Meters) {
        self.meters = meters;
    }

    /// Returns the cost for the hub of the guest's first waiting frame; `None` if no frame may be passed on
    /// now.
    pub(super) fn cost(&mut self, now: Instant) -> Option<u64> {
        let first = self.from_guest.first().filter(|_| !self.is_cut_off)?;
        let bytes = first.bytes().len() as u64;
        if let Some(rate) = &self.meters.rate
            && self.due_at.is_none()
        {
            // Reserved, so that no other hub gets ahead of a frame that waits.
            let due_at = rate.lock().reserve(bytes, now);
            add(&self.lane.over_budget, u64::from(due_at > now));
            self.due_at = Some(due_at);
        }
        let is_due = self.due_at.is_none_or(|due_at| now >= due_at);
        is_due.then_some(bytes + FRAME_COST_BYTES)
    }

    /// Takes the guest's first waiting frame, whose cost was asked for before; `None` if no frame waits.
    pub(super) fn take(&mut self) -> Option<Frame<Copied>> {
        let frame = self.from_guest.pop()?;
        self.due_at = None;
        self.has_changes |= self.lane.wants_room.load(Ordering::Relaxed);
        Some(frame)
    }

    /// Charges a frame to several others to the guest's budget. Returns `false` if the budget does not
    /// suffice.
    pub(super) fn may_flood<B: AsRef<[u8]>>(&self, frame: &Frame<B>, now: Instant) -> bool {
        let segment_bytes = frame.gso.map_or(usize::MAX, |gso| gso.size.get().into());
        let segments = frame.bytes().len().div_ceil(segment_bytes).max(1) as u64;
        let Some(storm) = &self.meters.storm else { return true };
        let may = storm.lock().take(segments, now).is_ok();
        add(&self.lane.over_budget, u64::from(!may));
        may
    }

    /// Checks the guest's thread, and cuts it off or serves it again. Returns what to say of the guest, which one hub
    /// says for all.
    pub(super) fn watch_guest(&mut self, now: Instant) -> Option<String> {
        let turns = self.state.turns.load(Ordering::Relaxed);
        let hangs = match self.watch.check(turns, !self.to_guest.is_empty(), now) {
            GuestState::Nothing => return None,
            GuestState::IsLate => {
                add(&self.lane.stalls, 1);
                return None;
            }
            GuestState::Hangs => true,
            GuestState::GoesOn => false,
        };
        self.is_cut_off = hangs;
        let is_said = self.state.is_said_to_hang.swap(hangs, Ordering::Relaxed) == hangs;
        (!is_said).then(|| match hangs {
            true => format!(
                "hangs: its thread has made no turn for {HANGS_AFTER:?}; what is for it is dropped"
            ),
            false => "goes on".to_owned(),
        })
    }

    pub(super) fn refuse(&self, bytes: usize) {
        add(&self.lane.refused, 1);
        add(&self.lane.refused_bytes, bytes as u64);
    }

    pub(super) fn record_loss(&self) {
        add(&self.lane.lost, 1);
    }

    /// Records a frame for the guest: copied if `is_put` is `true`, otherwise lost.
    pub(super) fn note(&mut self, is_put: bool, copied_bytes: usize) {
        if is_put {
            self.has_changes = true;
            add(&self.lane.copied_bytes, copied_bytes as u64);
        } else {
            self.record_loss();
        }
    }

    pub(super) fn wake(&mut self) {
        if std::mem::take(&mut self.has_changes) {
            self.state.wake_up.wake();
        }
    }
}

/// The fixed cost of a frame in bytes, in addition to its length, so that a flood of small frames gets no
/// more of the hub's time than large frames.
pub(super) const FRAME_COST_BYTES: u64 = 1_024;
