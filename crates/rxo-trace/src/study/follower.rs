//! Followers: points that share the first engine of their group, as long as their results must equal the
//! results of that engine.
//!
//! A point is one choice of settings. Two points with different limits have equal results until a poll exceeds
//! the smaller limit: a limit of 16 flows has no effect while each poll has packets of at most 16 flows, and a
//! limit of 64 segments has no effect while each poll has fewer than 64 packets. At the first poll that could
//! make a difference, the follower gets an engine of its own, which continues from the counts of the first
//! engine. The results are exact only if the engine holds and remembers nothing between polls.

use rxo_coalesce::{Config, Hold, Policy, PureAckRule};
use rxo_frame::Frame;

use super::flows::{Flows, NO_FLOW};
use super::point::{Point, Runner, Tally};
use crate::numbered::Numbered;
use crate::report::Protocol;

/// The largest limit on flows for which a point can be a follower. Flows of a poll are counted only up to this
/// number.
const MOST_FLOWS: usize = 64;

/// A point that follows the first engine of its group.
#[derive(Debug)]
pub(super) struct Follower {
    /// The index of the point in the study.
    number: usize,
    point: Point,
    config: Config,
    limit: Limit,
}

/// The condition for polls in which a follower may differ from the first engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// The poll has packets of more than this number of flows.
    Flows(usize),
    /// The poll has at least this number of packets.
    Packets(usize),
}

impl Follower {
    /// Returns a follower for `point` if it differs from `first` only in a limit that many polls do not reach.
    pub(super) fn of(first: &Point, number: usize, point: &Point, config: Config) -> Option<Self> {
        let (theirs, ours) = (&first.policy, &point.policy);
        let forgets = theirs.hold == Hold::EndOfPoll && theirs.pure_acks == PureAckRule::Bypass;
        if !forgets || first.poll != point.poll {
            return None;
        }
        let flows = theirs.flows.min(ours.flows).into();
        let limit = if (Policy { flows: theirs.flows, ..*ours }) == *theirs && flows <= MOST_FLOWS {
            Limit::Flows(flows)
        } else if (Policy { max_segments: theirs.max_segments, ..*ours }) == *theirs {
            Limit::Packets(theirs.max_segments.min(ours.max_segments).into())
        } else {
            return None;
        };
        Some(Self { number, point: *point, config, limit })
    }

    /// Returns `true` if the follower and the first engine may have different results for a poll of `packets`
    /// packets from `flows` flows.
    const fn may_differ(&self, packets: usize, flows: usize) -> bool {
        match self.limit {
            Limit::Flows(most) => flows > most,
            Limit::Packets(most) => packets >= most,
        }
    }

    /// Returns the counts of the follower, which equal the counts of the first engine.
    pub(super) fn tally(&self, first: &Runner) -> Tally {
        Tally { point: self.number, ..first.tally() }
    }
}

/// Creates an engine for every follower whose result may differ in the poll of the frames `batch`. `runners`
/// are the engines of the group, which have not processed that poll yet.
pub(super) fn diverge(
    followers: &mut Vec<Follower>,
    runners: &mut Vec<Runner>,
    batch: &[Frame<Numbered>],
    known: &Flows,
) {
    let wants_flows = followers.iter().any(|one| matches!(one.limit, Limit::Flows(_)));
    let flows = if wants_flows { flows_of(batch, known) } else { 0 };
    followers.retain(|follower| {
        if !follower.may_differ(batch.len(), flows) {
            return true;
        }
        let Follower { number, ref point, ref config, .. } = *follower;
        let (Some(first), Ok(mut own)) =
            (runners.first(), Runner::new(number, None, point, config.clone()))
        else {
            return true;
        };
        own.continue_from(first);
        runners.push(own);
        false
    });
}

/// Returns the number of flows that an engine may hold for these frames, at most one more than [`MOST_FLOWS`].
/// Each datagram counts as a flow of its own, because the datagrams of a tunnel may contain many flows.
fn flows_of(batch: &[Frame<Numbered>], known: &Flows) -> usize {
    let mut seen = [NO_FLOW; MOST_FLOWS];
    let (mut count, mut others, mut last) = (0, 0, NO_FLOW);
    for frame in batch {
        let number = frame.bytes.number;
        if (number == last && number != NO_FLOW) || seen[..count].contains(&number) {
            continue;
        }
        let is_tcp = known.get(number).is_some_and(|flow| flow.protocol == Protocol::Tcp);
        if is_tcp && count < MOST_FLOWS {
            seen[count] = number;
            count += 1;
            last = number;
        } else {
            others += 1;
        }
        if count + others > MOST_FLOWS {
            break;
        }
    }
    count + others
}
