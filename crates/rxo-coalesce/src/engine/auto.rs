//! Adaptive hold ([`Hold::Auto`]): selects the flows that stay held after a poll while the receiver is busy.
//!
//! The paper asks for a delay that follows the system's load (Oi and Nakajima 2009, section V). Here a flow is
//! held only while its receiver is busy with earlier deliveries, more segments are expected soon, and these would
//! still reduce the cost per segment. This module is separate because no other hold policy keeps per-flow state
//! between polls.
//!
//! A flow is flushed at the end of a poll if
//!
//! * the receiver is idle, or its load is unknown (all flows are flushed);
//! * the flow holds only one segment;
//! * the flow holds [`ENOUGH_SEGMENTS`] or more;
//! * the flow was held at the end of `most_polls` polls, this one included;
//! * the next poll, expected after the smoothed gap between polls, would come after the flow's time budget;
//! * the flow receives on average less than one segment per poll (smoothed).
//!
//! Between polls, [`Engine::on_timeout_under`] flushes flows whose budget is spent, and all flows once the
//! receiver is idle. All arithmetic is on integers, so that a model can predict every decision. Nothing
//! allocates after construction.

use alloc::boxed::Box;
use core::time::Duration;

use rxo_frame::{FrameBuffer, Instant, Load};

use super::Engine;
use super::exits::{Exits, TURNS};
use crate::{FlushReason, Held, Hold, Policy};

/// The number of segments above which a larger aggregate saves little (Menon & Zwaenepoel 2008, section 5.2).
const ENOUGH_SEGMENTS: u32 = 20;
/// The value of [`LastGain::share`] for one segment per poll (fixed point, 8 fractional bits).
const ONE_SEGMENT: u32 = 256;

/// The state of adaptive hold between polls.
#[derive(Debug, Default)]
pub(super) struct Pace {
    budget_ns: u64,
    most_polls: u32,
    /// The smoothed time between the ends of two polls in nanoseconds, at most the time budget. A pause counts as one
    /// budget, so that the average recovers soon after it.
    gap_ns: u64,
    last_end: Option<Instant>,
    /// The sequential number of the current poll, modulo 2³².
    poll: u32,
    /// For each flow index, the flow's state at the end of the last poll in which it gained a segment.
    seen: Box<[LastGain]>,
    /// The held flows, by the poll at whose end each is flushed if it gains no segment until then.
    exits: Exits,
}

/// A flow's state at the end of the last poll in which it gained a segment.
#[derive(Clone, Copy, Debug, Default)]
struct LastGain {
    /// The number of the last poll in which the flow gained a segment.
    poll: u32,
    segments: u32,
    /// The number of polls at whose end the flow stayed held, since its first segment.
    polls: u32,
    /// The smoothed number of segments that the flow gains per poll, times [`ONE_SEGMENT`].
    share: u32,
}

impl Pace {
    /// Creates the state for `flows` flow indices if the hold policy is [`Hold::Auto`]; otherwise empty state.
    pub(super) fn new(policy: &Policy, flows: usize) -> Self {
        let Hold::Auto { budget, most_polls } = policy.hold else { return Self::default() };
        // A quarter of `u64::MAX`, more than a century: `gap_ns` adds up four times this value.
        let budget_ns = nanos(budget).min(u64::MAX / 4);
        let seen = core::iter::repeat_n(LastGain::default(), flows).collect();
        let exits = Exits::new(flows);
        Self { budget_ns, most_polls, gap_ns: budget_ns, last_end: None, poll: 0, seen, exits }
    }

    /// Records that a poll ends at `now`: updates the smoothed time between polls and the poll number.
    fn advance(&mut self, now: Instant) {
        let since = self.last_end.map_or(self.budget_ns, |last| now.nanos_since(last));
        // Exponentially weighted average: the latest gap has the weight 1/4.
        self.gap_ns = (3 * self.gap_ns + since.min(self.budget_ns)) / 4;
        self.last_end = Some(now);
        self.poll = self.poll.wrapping_add(1);
    }

    /// Returns `true` if a flow held since `arrival` would exceed its budget by the end of the next poll.
    fn exceeds_budget(&self, arrival: Instant, now: Instant) -> bool {
        now.nanos_since(arrival).saturating_add(self.gap_ns) >= self.budget_ns
    }

    /// Returns the reason for which `flow` must be flushed when a poll ends at `now`; `None` if it stays
    /// held. `is_carried` is `true` if the flow was already held at the end of the previous poll.
    fn exit(
        &mut self,
        (flow, held): (u16, &Held),
        is_carried: bool,
        now: Instant,
    ) -> Option<FlushReason> {
        let is_spent = self.exceeds_budget(held.first_arrival, now);
        let seen = self.seen.get_mut(usize::from(flow))?;
        seen.update(self.poll, held.segments, is_carried);
        if held.segments == 1 {
            Some(FlushReason::LoneSegment)
        } else if held.segments >= ENOUGH_SEGMENTS {
            Some(FlushReason::EnoughSegments)
        } else if seen.polls >= self.most_polls {
            Some(FlushReason::PollLimit)
        } else if is_spent {
            Some(FlushReason::HoldBudget)
        } else if seen.share < ONE_SEGMENT {
            Some(FlushReason::LittleGain)
        } else {
            let polls = seen.polls_left(self.most_polls);
            self.exits.note(self.poll.wrapping_add(polls), flow);
            None
        }
    }
}

impl LastGain {
    /// Updates the flow's state at the end of poll number `poll`, when the flow holds `segments` segments. A
    /// flow that is not carried over began in this poll. A carried flow gained no segment in the polls since
    /// its last update, so its share decays.
    fn update(&mut self, poll: u32, segments: u32, is_carried: bool) {
        let gained = |before: u32| (segments - before).saturating_mul(ONE_SEGMENT);
        *self = if is_carried {
            let polls = poll.wrapping_sub(self.poll);
            let share = self.share.checked_shr(polls).unwrap_or(0);
            // Exponentially weighted average: the gain of this poll has the weight 1/2.
            let share = share + gained(self.segments) / 2;
            Self { poll, segments, polls: self.polls.saturating_add(polls), share }
        } else {
            Self { poll, segments, polls: 1, share: gained(0) }
        };
    }

    /// Returns the number of polls without a new segment after which the flow is flushed. The time budget may end
    /// the hold earlier.
    fn polls_left(&self, most_polls: u32) -> u32 {
        // After so many halvings the share is less than one segment.
        let halvings = (self.share / ONE_SEGMENT).max(1).ilog2() + 1;
        halvings.min(most_polls - self.polls).min(TURNS - 1)
    }
}

impl<B: FrameBuffer> Engine<B> {
    /// Ends a poll under [`Hold::Auto`]: flushes the flows that adaptive hold does not keep. `load` is `None`
    /// if the receiver's load is unknown.
    #[inline(never)]
    pub(super) fn hold_or_flush_by_load(&mut self, now: Instant, load: Option<Load>) {
        self.pace.advance(now);
        let reason = match load {
            None => FlushReason::EndOfPoll,
            Some(load) if load.is_idle() => FlushReason::ReceiverIdle,
            Some(_) => return self.hold_what_gains(now),
        };
        self.flush_all(self.store.end(), reason, now);
    }

    /// Flushes all flows if the policy is [`Hold::Auto`] and the receiver is idle. Returns `true` if it did.
    pub(super) fn flush_for_idle(&mut self, load: Option<Load>, now: Instant) -> bool {
        let is_auto = matches!(self.config.policy.hold, Hold::Auto { .. });
        let is_idle = is_auto && load.is_some_and(Load::is_idle);
        if is_idle {
            self.flush_all(self.store.end(), FlushReason::ReceiverIdle, now);
        }
        is_idle
    }

    /// Decides about the flows at the end of a poll. Examines only the flows that gained a segment in this poll,
    /// and the flows that must be flushed because they gained none. So the cost of a poll depends on its own
    /// frames, not on the number of held flows.
    fn hold_what_gains(&mut self, now: Instant) {
        if self.table.is_empty() {
            self.store.marks.deadlines = self.store.end();
            return;
        }
        let mut pace = core::mem::take(&mut self.pace);
        let carried_to = self.store.marks.poll;
        let (mut exits, poll) = (core::mem::take(&mut pace.exits), pace.poll);
        let flows = core::iter::from_fn(|| exits.take(poll));
        self.store.find_noted(flows, |arrival| pace.exceeds_budget(arrival, now));
        pace.exits = exits;
        // Flows without a gain were used before this poll, so they precede its frames in the order of
        // flushing.
        while let Some(flow) = self.store.next_due() {
            let held = &self.store.held[usize::from(flow)];
            if held.chain.tail < carried_to
                && let Some(reason) = pace.exit((flow, held), true, now)
            {
                self.flush_held(flow, reason, now);
            }
        }
        self.flush_for(carried_to, now, |flow, held| {
            pace.exit((flow, held), held.chain.head < carried_to, now)
        });
        self.pace = pace;
        let oldest = self.store.find_due(|_| false);
        self.oldest_arrival = oldest.map_or(now, |oldest| oldest.min(now));
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
