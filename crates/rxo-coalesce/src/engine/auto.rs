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
    /// By place, what was seen of a flow at the end of the last poll.
    seen: Box<[Seen]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
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
        Self { budget_ns, most_polls, gap_ns: budget_ns, last_end: None, seen }
    }

    /// A poll ends at `now`.
    fn advance(&mut self, now: Instant) {
        let since = self.last_end.map_or(self.budget_ns, |last| now.nanos_since(last));
        self.gap_ns = (3 * self.gap_ns + since.min(self.budget_ns)) / 4;
        self.last_end = Some(now);
    }

    /// Why the flow at `place` leaves at the end of the poll at `now`; `None` if it stays. `is_carried` says whether
    /// it was held at the end of the poll before.
    fn exit(
        &mut self,
        (place, held): (u16, &Held),
        is_carried: bool,
        now: Instant,
    ) -> Option<FlushReason> {
        let seen = self.seen.get_mut(usize::from(place))?;
        seen.see(held.segments, is_carried);
        let held_ns = now.nanos_since(held.first_arrival);
        if held.segments == 1 {
            Some(FlushReason::LoneSegment)
        } else if held.segments >= ENOUGH_SEGMENTS {
            Some(FlushReason::EnoughSegments)
        } else if seen.polls >= self.most_polls {
            Some(FlushReason::PollLimit)
        } else if held_ns.saturating_add(self.gap_ns) >= self.budget_ns {
            Some(FlushReason::HoldBudget)
        } else if seen.share < ONE_SEGMENT {
            Some(FlushReason::LittleGain)
        } else {
            None
        }
    }
}

impl Seen {
    /// Another poll ended, and the flow holds `segments`. What is not carried over began in this poll.
    fn see(&mut self, segments: u32, is_carried: bool) {
        let before = if is_carried { *self } else { Self::default() };
        let gained = (segments - before.segments).saturating_mul(ONE_SEGMENT);
        self.share = if is_carried { before.share / 2 + gained / 2 } else { gained };
        self.polls = before.polls + 1;
        self.segments = segments;
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

    fn hold_what_gains(&mut self, now: Instant) {
        let mut pace = core::mem::take(&mut self.pace);
        let mut oldest = now;
        let carried_to = self.store.marks.poll;
        self.flush_for(0, now, |place, held| {
            let exit = pace.exit((place, held), held.chain.head < carried_to, now);
            if exit.is_none() {
                oldest = oldest.min(held.first_arrival);
            }
            exit
        });
        self.pace = pace;
        self.oldest_arrival = oldest;
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
