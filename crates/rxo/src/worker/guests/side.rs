//! The hub's side of a guest's port: the ends of its lanes, and its budget.
//!
//! This module is separate from the hub, so that the limits of one guest are in one place. Contract: never
//! waits for the guest.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rxo_frame::{Frame, Instant};

use super::budget::{Bucket, Budget};
use super::lane::{Copied, LaneIn, LaneOut};
use super::port::{HubEnds, PortState, add};

/// The state that the hub, the loop with the nic and the switch, keeps of one guest: the ends of its lanes,
/// and its budget.
pub(super) struct Side {
    pub(super) to_guest: LaneIn,
    pub(super) from_guest: LaneOut,
    pub(super) state: Arc<PortState>,
    rate: Option<Bucket>,
    storm: Option<Bucket>,
    /// The time at which the first frame from the guest may be passed on; `None` if it need not wait.
    pub(super) due_at: Option<Instant>,
    /// `true` if the hub has put a frame into a lane of this guest, or taken one out, since it last woke the
    /// guest's worker.
    has_news: bool,
    /// Number of machines that had left the guest's device when the switch last forgot the addresses of the
    /// guest's port.
    pub(super) forgotten: u64,
    /// `true` if the guest's worker hangs. Frames for the guest are then dropped, and frames from the guest wait.
    pub(super) is_cut_off: bool,
}

impl Side {
    pub(super) fn new(ends: HubEnds) -> Self {
        let HubEnds { to_guest, from_guest, state } = ends;
        let mut side = Self {
            to_guest,
            from_guest,
            state,
            rate: None,
            storm: None,
            due_at: None,
            has_news: false,
            forgotten: 0,
            is_cut_off: false,
        };
        side.limit(Budget::default());
        side
    }

    /// Sets the guest's budget; the whole budget is available at first.
    pub(super) fn limit(&mut self, Budget { rate, burst, storm }: Budget) {
        self.rate = rate.map(|rate| Bucket::new(rate, burst));
        self.storm = storm.map(|storm| Bucket::new(storm, storm));
    }

    /// Returns the cost for the hub of the guest's first waiting frame; `None` if no frame may be passed on
    /// now.
    pub(super) fn cost(&mut self, now: Instant) -> Option<u64> {
        let first = self.from_guest.first().filter(|_| !self.is_cut_off)?;
        if self.due_at.is_some_and(|due_at| now < due_at) {
            return None;
        }
        let bytes = first.bytes().len() as u64;
        if let Some(Err(due_at)) = self.rate.map(|mut rate| rate.take(bytes, now)) {
            if self.due_at.is_none() {
                add(&self.state.over_budget, 1);
            }
            self.due_at = Some(due_at);
            return None;
        }
        Some(bytes + FRAME_COST_BYTES)
    }

    /// Takes the guest's first waiting frame, and charges the frame to the guest's budget; `None` if no frame
    /// waits.
    pub(super) fn take(&mut self, now: Instant) -> Option<Frame<Copied>> {
        let frame = self.from_guest.pop()?;
        if let Some(rate) = &mut self.rate {
            _ = rate.take(frame.bytes().len() as u64, now);
        }
        self.due_at = None;
        self.has_news |= self.state.wants_room.load(Ordering::Relaxed);
        Some(frame)
    }

    /// Charges a frame with several receivers to the guest's budget. Returns `false` if the budget does not suffice.
    pub(super) fn may_flood<B: AsRef<[u8]>>(&mut self, frame: &Frame<B>, now: Instant) -> bool {
        let segment_bytes = frame.gso.map_or(usize::MAX, |gso| gso.size.get().into());
        let segments = frame.bytes().len().div_ceil(segment_bytes).max(1) as u64;
        let Some(storm) = &mut self.storm else { return true };
        let may = storm.take(segments, now).is_ok();
        add(&self.state.over_budget, u64::from(!may));
        may
    }

    pub(super) fn refuse(&self, bytes: usize) {
        add(&self.state.refused, 1);
        add(&self.state.refused_bytes, bytes as u64);
    }

    pub(super) fn lose(&self) {
        add(&self.state.lost, 1);
    }

    /// Records a frame for the guest: copied if `is_put` is `true`, otherwise lost.
    pub(super) fn note(&mut self, is_put: bool, copied_bytes: usize) {
        if is_put {
            self.has_news = true;
            add(&self.state.copied_bytes, copied_bytes as u64);
        } else {
            self.lose();
        }
    }

    pub(super) fn wake(&mut self) {
        if std::mem::take(&mut self.has_news) {
            self.state.door.wake();
        }
    }
}

/// The fixed cost of a frame in bytes, in addition to its length, so that a flood of small frames gets no
/// more of the hub's time than large frames.
pub(super) const FRAME_COST_BYTES: u64 = 1_024;
