//! A lane: one interface of the capture, with its poll rules, and for each rule the engines that share it.
//!
//! A frame is added once to the queue of every poll rule. When a poll ends, each engine of the rule receives
//! the same batch. Frames share the bytes that were read, so a further engine needs no copy of the bytes.

use rxo_coalesce::Histogram;
use rxo_frame::{ConfigError, Duration, Frame, Instant, LinkKind};
use serde::{Deserialize, Serialize};

use super::chosen::Chosen;
use super::follower::{self, Follower};
use super::part::saved_histogram;
use super::point::{Point, Runner, Tally, slot};
use super::poll::{Poll, Polls};
use crate::numbered::Numbered;

/// The results of a poll rule on the traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PollFigures {
    /// The number of packets per poll.
    #[serde(with = "saved_histogram")]
    pub(super) packets: Histogram,
    /// The time from the end of a poll to the next packet, in nanoseconds.
    #[serde(with = "saved_histogram")]
    pub(super) pause_ns: Histogram,
}

impl PollFigures {
    pub(super) fn add(&mut self, other: &Self) {
        self.packets.add(&other.packets);
        self.pause_ns.add(&other.pause_ns);
    }
}

/// A poll rule, and the engines that are polled by this rule.
#[derive(Debug)]
pub(super) struct Group {
    polls: Polls,
    /// The packets that wait for the next poll.
    waiting: Vec<Frame<Numbered>>,
    batch: Vec<Frame<Numbered>>,
    first: Option<Instant>,
    last: Instant,
    ended: Option<Instant>,
    /// `true` once packets before the first packet of this part can no longer influence the result.
    is_settled: bool,
    figures: PollFigures,
    runners: Vec<Runner>,
    /// The points that share the first engine of this group, as long as their results are equal.
    followers: Vec<Follower>,
    /// The number of waiting packets, oldest first, whose bytes were copied out of the shared chunks.
    owned: usize,
    /// The number of packets that waited at the last call of [`Group::detach`].
    waited: usize,
}

/// One interface of the capture, with its engines.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) groups: Vec<Group>,
}

impl Lane {
    /// Creates a lane with engines for all `points`, for an interface whose packets begin with the header `link`.
    pub(super) fn new(
        points: &[Point],
        link: LinkKind,
        trust_checksums: bool,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        let mut groups: Vec<(Point, Group)> = Vec::new();
        for (number, point) in points.iter().enumerate() {
            let config = point.config(link, trust_checksums, seed);
            let slot = slot(points, number);
            match groups.iter_mut().find(|(first, _)| first.poll == point.poll) {
                Some((first, group)) => match Follower::of(first, number, point, config.clone()) {
                    Some(follower) => group.followers.push(follower),
                    None => group.runners.push(Runner::new(number, slot, point, config)?),
                },
                None => {
                    let runner = Runner::new(number, slot, point, config)?;
                    groups.push((*point, Group::new(point, runner)));
                }
            }
        }
        Ok(Self { groups: groups.into_iter().map(|(_, group)| group).collect() })
    }

    /// Adds a received packet to the queue of every poll rule.
    #[inline]
    pub(super) fn push(&mut self, frame: Frame<Numbered>, chosen: &mut Chosen) {
        let Some((last, others)) = self.groups.split_last_mut() else { return };
        for group in others {
            group.push(frame.clone(), chosen);
        }
        last.push(frame, chosen);
    }

    /// Runs the polls and engine deadlines that are due at `now`.
    pub(super) fn advance(&mut self, now: Instant, chosen: &mut Chosen) {
        for group in &mut self.groups {
            group.advance(now, chosen);
            group.detach();
        }
    }

    /// Runs the remaining polls and delivers all held packets, because no more packets will arrive.
    pub(super) fn finish(&mut self, now: Instant, chosen: &mut Chosen) {
        for group in &mut self.groups {
            group.finish(now, chosen);
        }
    }

    /// Prepares the lane for packets of another capture, whose timestamps are unrelated to the previous
    /// capture. No packet may be held.
    pub(super) fn rejoin(&mut self) {
        self.groups.iter_mut().for_each(Group::rejoin);
    }
}

impl Group {
    fn new(point: &Point, first: Runner) -> Self {
        Self {
            polls: Polls::new(point.poll),
            waiting: Vec::new(),
            batch: Vec::new(),
            first: None,
            last: Instant::ZERO,
            ended: None,
            is_settled: false,
            figures: PollFigures::default(),
            runners: vec![first],
            followers: Vec::new(),
            owned: 0,
            waited: 0,
        }
    }

    /// Returns the counts of all points with this poll rule, beginning with the first point.
    pub(super) fn tallies(&self) -> impl Iterator<Item = Tally> {
        let first = self.runners.first();
        let following = first
            .into_iter()
            .flat_map(|first| self.followers.iter().map(move |follower| follower.tally(first)));
        self.runners.iter().map(Runner::tally).chain(following)
    }

    /// Returns the results of the poll rule, and the number of polls that began early because the ring of the
    /// simulated host was full.
    pub(super) fn figures(&self) -> (&PollFigures, u64) {
        (&self.figures, self.polls.overruns())
    }

    #[inline]
    fn push(&mut self, frame: Frame<Numbered>, chosen: &mut Chosen) {
        let at = frame.arrived_at;
        self.run_due(at, chosen);
        if !self.is_settled {
            self.detect_influence(at, chosen);
        }
        if self.polls.waiting() == 0
            && let Some(ended) = self.ended
        {
            self.figures.pause_ns.record(at.nanos_since(ended));
        }
        self.waiting.push(frame);
        if let Some(poll) = self.polls.after(at) {
            self.run(poll, chosen);
        }
    }

    #[inline]
    fn run_due(&mut self, at: Instant, chosen: &mut Chosen) {
        while let Some(poll) = self.polls.before(at) {
            self.run(poll, chosen);
        }
    }

    /// Passes the packets of one poll to all engines of the poll rule.
    fn run(&mut self, poll: Poll, chosen: &mut Chosen) {
        let count = self.waiting.len().min(poll.packets as usize);
        self.figures.packets.record(count as u64);
        self.ended = Some(poll.at);
        self.owned = self.owned.saturating_sub(count);
        self.waited = self.waited.saturating_sub(count);
        if !self.followers.is_empty() {
            let batch = &self.waiting[..count];
            follower::diverge(&mut self.followers, &mut self.runners, batch, &chosen.flows);
        }
        let Some((last, others)) = self.runners.split_last_mut() else { return };
        for runner in others {
            self.batch.extend_from_slice(&self.waiting[..count]);
            runner.poll(&mut self.batch, poll.at, chosen);
        }
        if count == self.waiting.len() {
            last.poll(&mut self.waiting, poll.at, chosen);
        } else {
            self.batch.extend(self.waiting.drain(..count));
            last.poll(&mut self.batch, poll.at, chosen);
        }
    }

    /// Detects whether packets before the first packet of this part can still influence the result, when a
    /// packet arrives at `at`.
    #[cold]
    fn detect_influence(&mut self, at: Instant, chosen: &mut Chosen) {
        let pause = Duration::from_nanos(at.nanos_since(self.last));
        self.last = at;
        if self.first.is_none() {
            self.first = Some(at);
            return;
        }
        let mut is_settled = true;
        for runner in &mut self.runners {
            runner.catch_up(at, chosen);
            is_settled &= runner.on_pause(pause);
        }
        self.is_settled = is_settled;
    }

    /// Returns the arrival time of the group's first packet, and the time of its last poll; each is `None` if
    /// there was no packet or no poll.
    pub(super) const fn ends(&self) -> (Option<Instant>, Option<Instant>) {
        (self.first, self.ended)
    }

    fn advance(&mut self, now: Instant, chosen: &mut Chosen) {
        self.run_due(now, chosen);
        // Under any rule, the waiting packets are polled later than now, so only deadlines are due.
        self.runners.iter_mut().for_each(|runner| runner.catch_up(now, chosen));
    }

    fn finish(&mut self, now: Instant, chosen: &mut Chosen) {
        let mut end = now;
        while let Some(poll) = self.polls.rest() {
            self.run(poll, chosen);
            end = end.max(poll.at);
        }
        for runner in &mut self.runners {
            runner.finish(end, chosen);
        }
    }

    /// Prepares the group for packets of another capture, whose timestamps are unrelated to the previous capture.
    fn rejoin(&mut self) {
        self.polls.rejoin();
        self.runners.iter_mut().for_each(Runner::restart);
    }

    /// Copies the bytes of frames that have waited since the last call into separate memory, once for each
    /// frame. Otherwise an interface with little traffic would keep whole shared chunks allocated.
    fn detach(&mut self) {
        for frame in self.waiting.iter_mut().take(self.waited).skip(self.owned) {
            frame.bytes.bytes = frame.bytes.bytes.detached();
        }
        self.owned = self.waited;
        self.waited = self.waiting.len();
    }
}
