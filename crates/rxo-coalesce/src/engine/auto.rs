//! Adaptive hold: what stays held at the end of a poll while the receiver is busy.
//!
//! The paper asks for a delay that follows the system's load (Oi and Nakajima 2009, section V). Here a flow is
//! held only while its receiver could not look at it anyway, more segments are expected soon, and they
//! would still gain something. It is separate because no other hold policy remembers anything of a flow
//! from poll to poll.
//!
//! At the end of a poll a flow leaves if
//!
//! * the receiver is idle, or nobody knows whether it is (then all flows leave);
//! * it holds one segment;
//! * it holds [`ENOUGH_SEGMENTS`];
//! * it was held at the end of `most_polls` polls, this one included;
//! * the next poll, expected after the smoothed gap between polls, would come after its budget;
//! * its smoothed share of a poll is less than one segment.
//!
//! Between polls, [`Engine::on_timeout_under`] keeps the budget, and flushes everything once the receiver is
//! idle. All arithmetic is on integers, so that a model can predict every decision. Nothing allocates
//! after construction.

use alloc::boxed::Box;
use core::time::Duration;

use rxo_frame::{FrameBuffer, Instant, Load};

use super::Engine;
use super::exits::{Exits, TURNS};
use crate::{FlushReason, Held, Hold, Policy};

/// Beyond so many segments an aggregate gains little (Menon & Zwaenepoel 2008, section 5.2).
const ENOUGH_SEGMENTS: u32 = 20;
/// One segment in [`Seen::share`].
const ONE_SEGMENT: u32 = 256;

/// What adaptive hold remembers between polls.
#[derive(Debug, Default)]
pub(super) struct Pace {
    budget_ns: u64,
    most_polls: u32,
    /// Smoothed time between two ends of polls, at most the budget: a pause counts as one budget, so that
    /// it is soon forgotten.
    gap_ns: u64,
    last_end: Option<Instant>,
    /// The number of the present poll.
    poll: u32,
    /// By place, what was seen of a flow at the end of the last poll in which it gained something.
    seen: Box<[Seen]>,
    /// The flows that gain nothing any more, by the polls at whose ends they leave.
    exits: Exits,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The poll in which it was.
    poll: u32,
    segments: u32,
    /// Polls at whose end it was held.
    polls: u32,
    /// Smoothed number of segments that a poll brings, times [`ONE_SEGMENT`].
    share: u32,
}

impl Pace {
    /// Room for `places` flows if `policy` holds adaptively; otherwise nothing.
    pub(super) fn new(policy: &Policy, places: usize) -> Self {
        let Hold::Auto { budget, most_polls } = policy.hold else { return Self::default() };
        // Four times as much can be added up; it is more than a century.
        let budget_ns = nanos(budget).min(u64::MAX / 4);
        let seen = core::iter::repeat_n(Seen::default(), places).collect();
        let exits = Exits::new(places);
        Self { budget_ns, most_polls, gap_ns: budget_ns, last_end: None, poll: 0, seen, exits }
    }

    /// A poll ends at `now`.
    fn advance(&mut self, now: Instant) {
        let since = self.last_end.map_or(self.budget_ns, |last| now.nanos_since(last));
        self.gap_ns = (3 * self.gap_ns + since.min(self.budget_ns)) / 4;
        self.last_end = Some(now);
        self.poll = self.poll.wrapping_add(1);
    }

    /// Whether what began to be held at `arrival` would be held too long at the end of the next poll.
    fn is_spent(&self, arrival: Instant, now: Instant) -> bool {
        now.nanos_since(arrival).saturating_add(self.gap_ns) >= self.budget_ns
    }

    /// Why the flow at `place` leaves at the end of the poll at `now`; `None` if it stays. `is_carried` says whether
    /// it was held at the end of the poll before.
    fn exit(
        &mut self,
        (place, held): (u16, &Held),
        is_carried: bool,
        now: Instant,
    ) -> Option<FlushReason> {
        let is_spent = self.is_spent(held.first_arrival, now);
        let seen = self.seen.get_mut(usize::from(place))?;
        seen.see(self.poll, held.segments, is_carried);
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
            self.exits.note(self.poll.wrapping_add(polls), place);
            None
        }
    }
}

impl Seen {
    /// The poll with the number `poll` ended, and the flow holds `segments`. What is not carried over began in this poll.
    /// In the polls since the last time it gained nothing.
    fn see(&mut self, poll: u32, segments: u32, is_carried: bool) {
        let gained = |before: u32| (segments - before).saturating_mul(ONE_SEGMENT);
        *self = if is_carried {
            let polls = poll.wrapping_sub(self.poll);
            let share = self.share.checked_shr(polls).unwrap_or(0);
            let share = share + gained(self.segments) / 2;
            Self { poll, segments, polls: self.polls.saturating_add(polls), share }
        } else {
            Self { poll, segments, polls: 1, share: gained(0) }
        };
    }

    /// After how many polls without gain the flow leaves, if it is not for its budget.
    fn polls_left(&self, most_polls: u32) -> u32 {
        // Halved so often, its share is less than a segment.
        let halvings = (self.share / ONE_SEGMENT).max(1).ilog2() + 1;
        halvings.min(most_polls - self.polls).min(TURNS - 1)
    }
}

impl<B: FrameBuffer> Engine<B> {
    /// Ends a poll under [`Hold::Auto`].
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

    /// Flushes everything if the policy is [`Hold::Auto`] and the receiver is idle. Returns whether it is.
    pub(super) fn flush_for_idle(&mut self, load: Option<Load>, now: Instant) -> bool {
        let is_auto = matches!(self.config.policy.hold, Hold::Auto { .. });
        let is_idle = is_auto && load.is_some_and(Load::is_idle);
        if is_idle {
            self.flush_all(self.store.end(), FlushReason::ReceiverIdle, now);
        }
        is_idle
    }

    /// Examines the flows that gained something in this poll, and those that may leave because they did not. What a poll
    /// brought is therefore all that its end, and those of a few later polls, have to look at.
    fn hold_what_gains(&mut self, now: Instant) {
        if self.table.is_empty() {
            self.store.marks.deadlines = self.store.end();
            return;
        }
        let mut pace = core::mem::take(&mut self.pace);
        let carried_to = self.store.marks.poll;
        let (mut exits, poll) = (core::mem::take(&mut pace.exits), pace.poll);
        let places = core::iter::from_fn(|| exits.take(poll));
        self.store.find_noted(places, |arrival| pace.is_spent(arrival, now));
        pace.exits = exits;
        // They stand before the frames of this poll, so they were used less recently than all of these.
        while let Some(place) = self.store.next_due() {
            let held = &self.store.held[usize::from(place)];
            if held.chain.tail < carried_to
                && let Some(reason) = pace.exit((place, held), true, now)
            {
                self.flush_held(place, reason, now);
            }
        }
        self.flush_for(carried_to, now, |place, held| {
            pace.exit((place, held), held.chain.head < carried_to, now)
        });
        self.pace = pace;
        let oldest = self.store.find_due(|_| false);
        self.oldest_arrival = oldest.map_or(now, |oldest| oldest.min(now));
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
