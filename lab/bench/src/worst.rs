//! Counts the worst case: the cost of a frame that a sender has chosen to be as expensive as possible, in
//! some attacks with knowledge of the seed.
//!
//! The attacks are those of the engine's own tests, which count steps; here instructions are counted. The
//! engine has the largest permitted configuration. Filling it before an attack is not counted. The count is
//! per frame that enters or leaves the engine during the assault, and includes the polls.

use std::time::Duration;

use rxo_coalesce::{Config, Deliveries, Engine, Hold, Policy};
use rxo_frame::{Frame, Instant, Load};
use rxo_testkit::adversary::{Adversary, FLOWS, SLOTS};
use rxo_wire::{FlowHasher, FlowKey};

use crate::contender::SEED;

const POLL_NS: u64 = 1_000;

/// An attack on an engine with one kind of hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worst {
    hold: &'static str,
    adversary: Adversary,
}

impl Worst {
    /// Returns all rows.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let of = |hold| Adversary::ALL.map(|adversary| Self { hold, adversary });
        HOLDS.into_iter().flat_map(of)
    }

    /// Returns the row's name.
    pub(crate) fn name(self) -> String {
        format!("worst-{}-{}", self.hold, self.adversary)
    }

    /// Returns the case of ordinary traffic under the same hold, for comparison.
    #[cfg(test)]
    pub(crate) const fn beside(self) -> Self {
        Self { adversary: Adversary::Nobody, ..self }
    }

    /// Runs the assault `passes` times inside `counted`. Returns the total number of frames that entered or
    /// left.
    pub(crate) fn run(self, passes: u32, mut counted: impl FnMut(&mut dyn FnMut())) -> usize {
        let assault = self.adversary.assault(&hash);
        let mut moved = 0;
        for _ in 0..passes {
            let mut polls = self.polls();
            polls.take(batches(&assault.before), &mut 0);
            let batches = batches(&assault.polls);
            moved += batches.iter().map(Vec::len).sum::<usize>();
            let mut batches = Some(batches);
            counted(&mut || polls.take(batches.take().unwrap_or_default(), &mut moved));
        }
        moved
    }

    /// Makes an engine that has received nothing.
    fn polls<'a>(self) -> Polls<'a> {
        let config = Config {
            batch_frames: SLOTS / 5,
            trust_checksums: self.adversary != Adversary::BadChecksums,
            ..Config::new(self.policy(), SEED)
        };
        Polls { engine: Engine::new(config).expect("in range"), ended: 0 }
    }

    /// Returns a policy that aggregates data and pure ACKs, with the most flows.
    fn policy(self) -> Policy {
        let hold = match self.hold {
            "end" => Hold::EndOfPoll,
            "polls" => Hold::EveryNthPoll(u32::MAX),
            "packets" => Hold::EveryNPackets(65_536),
            "time" => Hold::Within(Duration::from_millis(1)),
            _ => Hold::AUTO,
        };
        let max_hold = Duration::from_millis(1);
        Policy { hold, max_hold, flows: FLOWS as u16, ..Policy::gallatin_2007() }
    }
}

/// The kinds of hold that are attacked.
const HOLDS: [&str; 5] = ["end", "polls", "packets", "time", "auto"];

struct Polls<'a> {
    engine: Engine<&'a [u8]>,
    ended: u64,
}

impl<'a> Polls<'a> {
    /// Processes the batches, one poll each, and adds the frames that left to `left`.
    fn take(&mut self, batches: Vec<Vec<Frame<&'a [u8]>>>, left: &mut usize) {
        batches.into_iter().for_each(|batch| self.counted_poll(batch, left));
    }

    /// Processes a batch as a poll, or as a part of one if the hold ends with the poll. A separate function,
    /// so that callgrind can count each call by itself.
    #[inline(never)]
    fn counted_poll(&mut self, mut batch: Vec<Frame<&'a [u8]>>, left: &mut usize) {
        self.ended += 1;
        let now = Instant::from_nanos(self.ended * POLL_NS);
        batch.iter_mut().for_each(|frame| frame.arrived_at = now);
        let mut sink = |leaving: Deliveries<'_, &'a [u8]>| {
            *left += leaving.iter().flat_map(|one| one.frames()).count();
        };
        match self.engine.config().policy.hold {
            Hold::EndOfPoll => self.engine.push(&mut batch, now, &mut sink),
            _ => self.engine.poll_under(Some(Load { unread: 1 }), &mut batch, now, &mut sink),
        }
        self.engine.on_timeout(now, sink);
    }
}

fn batches(polls: &[Vec<Vec<u8>>]) -> Vec<Vec<Frame<&[u8]>>> {
    let frame = |bytes| Frame::new(bytes, Instant::ZERO);
    polls.iter().map(|poll| poll.iter().map(Vec::as_slice).map(frame).collect()).collect()
}

/// Returns the engine's hash of a flow of the test kit.
fn hash(host: u32, port: Option<u16>) -> u64 {
    let (source, destination) = (10 << 24 | host, 192 << 24 | 168 << 16 | 1);
    let ports = port.map_or(0, |port| u32::from(port) << 16 | 443);
    FlowHasher::new(SEED).hash(&FlowKey::v4(source, destination, ports, 0)).0
}
