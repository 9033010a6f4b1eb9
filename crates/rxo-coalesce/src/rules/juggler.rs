//! Juggler: restores the order of segments before it coalesces them (Geng, Jeyakumar, Kabbani and Alizadeh,
//! "Juggler: A Practical Reordering Resilient Network Stack for Datacenters", EuroSys 2016).
//!
//! ```text
//!  first segment                  a delivery                     everything delivered
//!  ─────────────▶ build-up ──────────────────▶ active merging ◀──────────────────────▶ post merge
//!                                               │          ▲      the next segment
//!                              `ofo_timeout`    ▼          │   the missing segment
//!                                              loss recovery
//! ```
//!
//! Segments are held in the order of their sequence numbers. In-order segments, which continue the delivered
//! data, are held for at most `inseq_timeout`, so that more segments can join them. Segments behind a gap are
//! held for at most `ofo_timeout`, so that the gap can be filled. Both times count from the last delivery of the
//! flow. If a gap is not filled in time, all segments are delivered so that TCP learns of the loss, and the flow
//! enters loss recovery. A segment that precedes the delivered data is delivered at once.

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;

use super::{Flow, Moment, Placement, Release, Rules, Run};
use crate::{Candidate, FlushReason, Policy};

/// The rules of Juggler. Segments are merged by the rules of a policy, which is `linux-gro` by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Juggler {
    /// The conditions under which segments are merged, and the limits. `hold` has no effect; `max_hold` limits
    /// the time that any segment is held, across several gaps.
    pub policy: Policy,
    /// The maximum time, from the last delivery of the flow, that in-order segments are held. 0 delivers them at
    /// the end of each poll.
    pub inseq_timeout: Duration,
    /// The maximum time, from the last delivery of the flow, that segments behind a gap are held until the
    /// missing segments arrive.
    pub ofo_timeout: Duration,
}

/// The phase of a flow, which decides how long its segments are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// No segment of the flow was delivered yet, so its first byte is not known.
    #[default]
    BuildUp,
    /// The flow holds segments and is not in loss recovery.
    ActiveMerging,
    /// The flow holds nothing. It is evicted before flows in other phases.
    PostMerge,
    /// A segment was lost: the segment with this sequence number did not arrive in time. The phase ends when it
    /// arrives.
    LossRecovery(SeqNumber),
}

/// The time after which a flow that waits for a lost segment is no longer preferred, as in the authors'
/// implementation: its connection may be gone.
const IDLE: Duration = Duration::from_millis(100);
/// The maximum number of gaps in the segments of a flow, plus one.
const MOST_RUNS: usize = 256;

impl Juggler {
    /// Returns the rules with the times that suit a host at 10 Gb/s: `inseq_timeout` is 52 µs, in which an
    /// aggregate of 64 KiB arrives, and `ofo_timeout` is 100 µs.
    #[must_use]
    pub const fn new() -> Self {
        let mut policy = Policy::linux_gro();
        policy.name = "juggler";
        policy.paper = "Geng et al. 2016, Juggler";
        Self {
            policy,
            inseq_timeout: Duration::from_micros(52),
            ofo_timeout: Duration::from_micros(100),
        }
    }
}

impl Default for Juggler {
    fn default() -> Self {
        Self::new()
    }
}

impl Rules for Juggler {
    type Memory = Phase;

    fn policy(&self) -> &Policy {
        &self.policy
    }

    fn verdict(&self, flow: &mut Flow<'_, Phase>, next: &Candidate<'_>) -> Placement {
        let seq = next.tcp.seq;
        if let Phase::LossRecovery(lost) = *flow.memory
            && !lost.is_before(seq)
            && lost.is_before(seq + next.payload_bytes())
        {
            *flow.memory = Phase::ActiveMerging;
        }
        if flow.next_seq.is_some_and(|next_seq| seq.is_before(next_seq)) {
            return Placement::Ahead(FlushReason::OutOfSequence);
        }
        if *flow.memory == Phase::PostMerge {
            *flow.memory = Phase::ActiveMerging;
        }
        Placement::InSequence
    }

    fn hold(&self, flow: &mut Flow<'_, Phase>, moment: Moment, now: Instant) -> Release {
        let Some(first) = flow.runs.first() else {
            if *flow.memory == Phase::ActiveMerging {
                *flow.memory = Phase::PostMerge;
            }
            return Release::Nothing(None);
        };
        let in_sequence = flow.next_seq.is_none_or(|next| !next.is_before(first.first_seq()));
        let timeout = if in_sequence { self.inseq_timeout } else { self.ofo_timeout };
        let deadline = flow.delivered_at + timeout;
        // A run that ends for another reason than a gap cannot grow.
        let is_complete =
            in_sequence && first.end.is_some_and(|end| end != FlushReason::OutOfSequence);
        let is_over = moment != Moment::Placed && now >= deadline;
        let release = match (first.end, in_sequence) {
            (Some(end), _) if is_complete => Release::Runs(1, end),
            _ if !is_over => return Release::Nothing(Some(deadline)),
            (_, true) => Release::Runs(in_sequence_runs(flow.runs), FlushReason::Timeout),
            (_, false) => {
                *flow.memory = flow.next_seq.map_or(Phase::ActiveMerging, Phase::LossRecovery);
                return Release::Runs(flow.runs.len(), FlushReason::Timeout);
            }
        };
        if *flow.memory == Phase::BuildUp {
            *flow.memory = Phase::ActiveMerging;
        }
        release
    }

    fn rank(&self, flow: &Flow<'_, Phase>, now: Instant) -> u8 {
        match *flow.memory {
            Phase::PostMerge => 1,
            Phase::LossRecovery(_) if now.since(flow.delivered_at) < IDLE => 3,
            Phase::LossRecovery(_) if flow.runs.is_empty() => 1,
            Phase::BuildUp | Phase::ActiveMerging | Phase::LossRecovery(_) => 2,
        }
    }

    fn most_runs(&self) -> usize {
        MOST_RUNS
    }
}

/// Returns the number of leading runs without a gap between them.
fn in_sequence_runs(runs: &[Run]) -> usize {
    1 + runs.windows(2).take_while(|pair| pair[0].touches(&pair[1])).count()
}
