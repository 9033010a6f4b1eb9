//! Rules as code: coalescing systems that no value of [`Policy`] can describe, and a slow engine that runs them.
//!
//! A [`Policy`] is data, and the fast [`Engine`](crate::Engine) runs it. A system whose decisions cannot be
//! data, such as [`Juggler`], which restores the order of segments, implements the trait [`Rules`]. The generic
//! tier [`RuleEngine`] runs any rules: it has the calls and the deliveries of [`Engine`](crate::Engine), and
//! shares headers, merging and deliveries with it, but none of its tiers. The generic tier is separate, so it
//! does not slow down the fast engine.
//!
//! * [`Rules`]: the four decisions, each with a default that a policy makes.
//! * [`by_policy`]: these defaults. [`Policy`] itself implements [`Rules`] by them.
//! * [`Flow`], [`Run`]: the state of a flow that rules receive.
//! * `floor`: conditions that no rules can waive.
//! * `queue`, `shelf`, `flows`: the held segments of a flow in order, their frames, and the table of flows.
//! * [`RuleEngine`]: applies the decisions; `ready`: the deliveries that wait for the sink.
//! * [`Juggler`]: the rules of Juggler (Geng et al., EuroSys 2016).
//!
//! # Contract
//! The engine guarantees the following, whatever the rules decide:
//!
//! * **Transparent.** Every frame is delivered once and unchanged. Two frames of a flow are delivered in
//!   another order than that of arrival only if both are segments with payload and the one that is delivered
//!   first precedes the other in the byte stream. Segments whose headers cannot be merged are never merged.
//! * **Lossless.** An aggregate keeps its original frames.
//! * **Bounded.** All memory is allocated by [`RuleEngine::new`]. A segment is held for at most
//!   [`RuleEngine::most_hold`], whatever the rules decide.
//!
//! The engine is slow: each frame costs a search through all flows, and through the held segments of its own
//! flow.
//!
//! # Examples
//! Rules that deliver every aggregate of two segments at once:
//! ```
//! use rxo_coalesce::rules::{Flow, Moment, Release, RuleEngine, Rules};
//! use rxo_coalesce::{Config, FlushReason, Policy};
//! use rxo_frame::{Frame, Instant};
//!
//! struct Pairs(Policy);
//!
//! impl Rules for Pairs {
//!     type Memory = ();
//!
//!     fn policy(&self) -> &Policy {
//!         &self.0
//!     }
//!
//!     fn hold(&self, flow: &mut Flow<'_, ()>, _moment: Moment, _now: Instant) -> Release {
//!         match flow.runs {
//!             [run, ..] if run.held.segments >= 2 => Release::Runs(1, FlushReason::SegmentLimit),
//!             _ => Release::Nothing(None),
//!         }
//!     }
//! }
//!
//! let rules = Pairs(Policy::linux_gro());
//! let mut engine = RuleEngine::new(rules, Config::new(Policy::linux_gro(), 7))?;
//! let mut batch = vec![Frame::new(vec![0; 60], Instant::ZERO)];
//! let mut frames = 0;
//! engine.poll(&mut batch, Instant::ZERO, |deliveries| frames += deliveries.len());
//! assert_eq!(frames, 1);
//! # Ok::<(), rxo_frame::ConfigError>(())
//! ```

pub mod by_policy;
mod engine;
mod floor;
mod flow;
mod flows;
mod juggler;
mod queue;
mod ready;
mod shelf;

use rxo_frame::Instant;
use rxo_wire::Parsed;

pub use engine::RuleEngine;
pub use flow::{Flow, Run};
pub use juggler::{Juggler, Phase};
pub use queue::runs_of;

use crate::{BypassReason, Candidate, FlushReason, Held, Policy};

/// The rules of a system of receive coalescing, as code. Every method has a default: the decision of
/// [`Rules::policy`].
///
/// All methods are pure functions of their arguments: equal arguments must give equal answers.
pub trait Rules {
    /// The state that the rules keep for each flow, in addition to the state in [`Flow`]. A new flow gets the
    /// default of this type.
    type Memory: Default;

    /// The policy that supplies the limits, and every decision that the rules do not make themselves.
    fn policy(&self) -> &Policy;

    /// Decides by the headers of one packet whether it may be coalesced at all.
    ///
    /// # Errors
    /// The reason to deliver the packet untouched, after the held segments of its flow. The engine also refuses
    /// packets that no system may coalesce, even if this method accepts them.
    fn candidate(&self, parsed: &Parsed) -> Result<(), BypassReason> {
        crate::candidate(parsed, self.policy()).map(|_| ())
    }

    /// Decides where the candidate `next` is placed. `flow` is the state of the candidate's flow before the
    /// placement.
    fn verdict(&self, flow: &mut Flow<'_, Self::Memory>, next: &Candidate<'_>) -> Placement {
        by_policy::verdict(self.policy(), flow, next)
    }

    /// Returns the reason for which `run` ends, or `None` if it stays open. If `next` is `None`, decides
    /// whether the run accepts any further segment; otherwise decides whether it accepts `next`. `last` is the
    /// run's last segment.
    fn close(
        &self,
        run: &Held,
        last: &Candidate<'_>,
        next: Option<&Candidate<'_>>,
    ) -> Option<FlushReason> {
        by_policy::close(self.policy(), run, last, next)
    }

    /// Decides how many of the runs that `flow` holds are delivered at `moment`. The engine calls this again
    /// after each delivery, until the result is [`Release::Nothing`].
    fn hold(&self, flow: &mut Flow<'_, Self::Memory>, moment: Moment, now: Instant) -> Release {
        by_policy::hold(self.policy(), flow, moment, now)
    }

    /// Returns the rank of a flow. If there are too many flows, the least recently used of the lowest rank is
    /// evicted. A flow of rank 0 that holds nothing is forgotten at once.
    fn rank(&self, flow: &Flow<'_, Self::Memory>, _now: Instant) -> u8 {
        u8::from(!flow.runs.is_empty())
    }

    /// Returns the maximum number of runs that a flow holds; the engine allocates memory for them. Rules that
    /// hold segments in the order of sequence numbers need one run for each gap.
    /// [`RuleEngine::new`] refuses more than 1,048,576 runs for all flows of the policy together.
    fn most_runs(&self) -> usize {
        2
    }
}

/// The place of a candidate among the held segments of its flow, as the rules decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Deliver the held segments of the flow for the first reason, then the candidate untouched.
    Bypass(FlushReason, BypassReason),
    /// Deliver the candidate alone at once, and keep the held segments of its flow. Allowed only if the
    /// candidate precedes all held segments in the byte stream; otherwise the held segments are delivered
    /// first.
    Ahead(FlushReason),
    /// Hold the candidate behind all held segments of its flow.
    Last,
    /// Hold the candidate in the order of sequence numbers; behind held segments with the same number.
    InSequence,
}

/// The moment at which [`Rules::hold`] decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The engine has placed a segment in the flow.
    Placed,
    /// As many packets have arrived as the policy sets by [`Hold::EveryNPackets`](crate::Hold::EveryNPackets).
    PacketWindow,
    /// The poll with this number ended. The first poll has the number 1.
    EndOfPoll(u64),
    /// The time for which the rules requested another call, by [`Release::Nothing`], has come.
    Due,
}

/// The part of a flow that is delivered now, as the rules decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Nothing is delivered now. The rules are called for the flow again at this time at the latest; `None`
    /// requests no call.
    Nothing(Option<Instant>),
    /// This number of runs, the first ones of the flow, are delivered for this reason.
    Runs(usize, FlushReason),
}

/// A policy as rules for the generic tier. TCP segments are coalesced exactly as by the fast engine. Pure ACKs,
/// UDP datagrams and tunnel packets are not coalesced, and adaptive hold delivers at the end of each poll.
impl Rules for Policy {
    type Memory = ();

    fn policy(&self) -> &Policy {
        self
    }
}
