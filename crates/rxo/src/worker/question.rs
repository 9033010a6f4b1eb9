//! Questions to a running worker, which answers between two turns.

use std::time::Duration;

use rxo_coalesce::Policy;

use super::{Coalesce, Coalescing, Misfit, Readings};
use crate::desk::Reply;

/// A question to a running worker, or to the workers of several guests. Put it on the
/// [`Desk`](crate::desk::Desk) in [`WorkerConfig::desk`](super::WorkerConfig::desk).
#[derive(Debug)]
pub enum Question {
    /// Asks for all counters since the worker was created.
    Counters(Reply<Readings>),
    /// Asks for the policy of each engine, in the order of the guests.
    Policies(Reply<Vec<PolicyInForce>>),
    /// Changes the policy of all engines. An engine changes at the start of the next turn in which its host's
    /// device accepts packets: the engine delivers all frames that it holds, and then follows the new policy.
    /// If the policy does not fit one of the engines, no engine changes.
    ChangePolicy(Policy, Reply<Result<Moment, Misfit>>),
    /// Changes the mode of coalescing; `None` changes nothing. An engine that is switched off first delivers
    /// all frames that it holds, as for a new policy.
    Coalesce(Option<Coalesce>, Reply<Moment>),
    /// Changes the interval between two reports; `None` for no reports. The next report is due one interval
    /// from now.
    ReportEvery(Option<Duration>, Reply<Result<(), Misfit>>),
}

/// The policy of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyInForce {
    /// The policy that the engine follows, limited to the aggregates that its sink accepts.
    pub policy: Policy,
    /// The policy that the engine will follow once its sink accepts packets again; `None` if there is no
    /// change.
    pub next: Option<Policy>,
    /// The state of coalescing for this engine.
    pub coalescing: Coalescing,
}

/// The time at which a change takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The change takes effect at the start of the next turn.
    NextTurn,
    /// The change takes effect at this number of hosts later, once their devices accept packets again; at the
    /// other hosts it takes effect in the next turn.
    WhenThereIsRoom(usize),
}

impl Moment {
    /// Combines the moments at which changes take effect at several hosts.
    pub(super) fn together(moments: impl Iterator<Item = Self>) -> Self {
        match moments.filter(|moment| *moment != Self::NextTurn).count() {
            0 => Self::NextTurn,
            waiting => Self::WhenThereIsRoom(waiting),
        }
    }
}

#[cfg(test)]
mod tests {
    use rxo_coalesce::{Hold, TunnelRule};
    use rxo_device::{MemoryLink, MemoryOptions, MemorySink, MemorySource};
    use rxo_frame::{Frame, Instant};
    use rxo_testkit::seg;

    use super::*;
    use crate::worker::{Awake, Duplex, Worker, WorkerConfig, looped};

    const SEGMENT_BYTES: u32 = 1_448;

    /// A worker on links in memory. Frames arrive at `nic`, and leave at `host`.
    struct World {
        nic: MemoryLink,
        host: MemoryLink,
        worker: Worker<MemorySource, MemorySink, MemorySource, MemorySink>,
        now: Instant,
        sent: u32,
    }

    impl World {
        fn new(policy: Policy) -> Self {
            let link = || MemoryLink::new(MemoryOptions::default());
            let (nic, host, idle) = (link(), link(), link());
            let from = Duplex { source: nic.source(), sink: idle.sink() };
            let to = Duplex { source: idle.source(), sink: host.sink() };
            let config = WorkerConfig { overload: None, ..WorkerConfig::new(policy) };
            let worker = Worker::new(from, to, config).unwrap();
            Self { nic, host, worker, now: Instant::ZERO, sent: 0 }
        }

        /// Lets `count` segments of one flow arrive, and gives the worker a turn.
        fn turn(&mut self, count: u32) {
            self.now = self.now + Duration::from_micros(10);
            for _ in 0..count {
                self.nic.push(&segment(self.sent, self.now));
                self.sent += 1;
            }
            let now = self.now;
            self.worker.turn(|_| now, Awake::ALL).unwrap();
        }

        fn change(&mut self, policy: Policy) -> Result<Moment, Misfit> {
            let (reply, answer) = Reply::new();
            looped::answer(&mut self.worker, Question::ChangePolicy(policy, reply));
            answer.recv().unwrap()
        }

        fn policy(&mut self) -> PolicyInForce {
            let (reply, answer) = Reply::new();
            looped::answer(&mut self.worker, Question::Policies(reply));
            answer.recv().unwrap()[0]
        }

        fn in_force(&mut self) -> (Policy, Option<Policy>) {
            let PolicyInForce { policy, next, .. } = self.policy();
            (policy, next)
        }

        /// Returns the number of payload bytes that have left.
        fn left(&self) -> usize {
            let headers = 54;
            self.host.take_all().iter().map(|sent| sent.bytes.len() - headers).sum()
        }
    }

    fn segment(number: u32, at: Instant) -> Frame<Vec<u8>> {
        let seq = 100 + number * SEGMENT_BYTES;
        seg().seq(seq).len(SEGMENT_BYTES as usize).frame_at(at)
    }

    fn holding() -> Policy {
        let gro = Policy::linux_gro().with_udp_if(false);
        // A link in memory cannot segment tunnels.
        Policy { hold: Hold::Within(Duration::from_millis(100)), tunnels: TunnelRule::Off, ..gro }
    }

    #[test]
    fn a_change_delivers_what_is_held_with_the_next_turn() {
        let mut world = World::new(holding());
        world.turn(5);
        assert_eq!(world.left(), 0, "it is held");
        assert_eq!(world.change(Policy::linux_gro()), Ok(Moment::NextTurn));
        assert_eq!(world.left(), 0, "an answer sends nothing");
        world.turn(1);
        assert_eq!(world.left() as u32, 6 * SEGMENT_BYTES);
        let now = world.policy();
        assert_eq!((now.policy.hold, now.next), (Hold::EndOfPoll, None));
        let counters = world.worker.reading().engine;
        assert_eq!(counters.flushed(rxo_coalesce::FlushReason::PolicyChange), 1);
        assert_eq!(counters.frames, 6, "the counters go on");
    }

    #[test]
    fn while_the_device_takes_nothing_a_change_waits() {
        let mut world = World::new(holding());
        world.turn(5);
        world.host.set_room(Some(0));
        // A packet of another flow blocks the device.
        world.nic.push(&seg().flow(9).seq(1).len(1).psh().frame_at(world.now));
        world.turn(0);
        assert_eq!(world.change(Policy::none()), Ok(Moment::WhenThereIsRoom(1)));
        world.turn(3);
        let waiting = world.policy();
        assert_eq!((waiting.policy, waiting.next), (holding(), Some(Policy::none())));
        world.host.set_room(None);
        world.turn(0);
        world.turn(0);
        assert_eq!(world.in_force(), (Policy::none(), None));
        assert_eq!(world.left() as u32, 8 * SEGMENT_BYTES + 1, "nothing is lost");
        assert_eq!(world.worker.reading().host_out.dropped, 0);
    }

    #[test]
    fn a_policy_that_the_device_cannot_carry_changes_nothing() {
        let mut world = World::new(holding());
        let wrong = Policy { flows: 0, ..Policy::linux_gro() };
        assert!(matches!(world.change(wrong), Err(Misfit::Number(_))));
        let refused = world.change(Policy::remember());
        assert_eq!(refused, Err(Misfit::NeedsRecords { policy: "remember" }));
        assert_eq!(world.in_force(), (holding(), None));
    }

    #[test]
    fn an_interval_that_is_too_short_is_refused() {
        let mut world = World::new(holding());
        let (reply, answer) = Reply::new();
        let short = Duration::from_micros(1);
        looped::answer(&mut world.worker, Question::ReportEvery(Some(short), reply));
        assert_eq!(answer.recv().unwrap(), Err(Misfit::ReportEvery(short)));
    }
}
