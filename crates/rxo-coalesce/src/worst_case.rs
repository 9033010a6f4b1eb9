//! Tests of the worst case: under the attacks of `rxo_testkit::adversary` the steps per frame and per poll are
//! bounded, for any arriving frames and any held flows.
//!
//! Steps are counted in every loop whose length could depend on senders ([`crate::work`]), so the figures are
//! exact and the same on every machine. `cargo xtask bench instructions` counts the instructions of the same
//! attacks.

use core::time::Duration;
use std::format;
use std::string::String;
use std::vec::Vec;

use rxo_frame::{Frame, Instant, Load};
use rxo_testkit::adversary::{Adversary, Assault, FLOWS, SLOTS};
use rxo_testkit::seg;
use rxo_wire::{FlowHasher, FlowKey};

use crate::{Config, Deliveries, Engine, FlushReason, Hold, Policy, work};

const SEED: u64 = 0x72_78_6f;
/// The maximum number of steps per frame received or delivered, and per poll.
const MOST_STEPS_A_FRAME: u64 = 40;
const MOST_STEPS_A_POLL: u64 = 40;
/// The maximum number of additional steps in one poll that does deferred work.
const MOST_STEPS_PUT_OFF: u64 = 4 * SLOTS as u64;
const POLL_NS: u64 = 1_000;

/// The seed that all engines had before [`Config::new`] took one. It was public in the source.
const PUBLISHED_SEED: u64 = 0x5bd1_e995_9e37_79b9;
/// The client's port in the flows that are chosen by their hash.
const CLIENT: u16 = 1_000;

/// Returns the hash of a flow of the test kit, as an engine with [`SEED`] computes it.
fn hash(host: u32, port: Option<u16>) -> u64 {
    hash_with(SEED, host, port)
}

/// Returns the hash of a flow of the test kit, as an engine with `seed` computes it.
fn hash_with(seed: u64, host: u32, port: Option<u16>) -> u64 {
    let (source, destination) = (10 << 24 | host, 192 << 24 | 168 << 16 | 1);
    let ports = port.map_or(0, |port| u32::from(port) << 16 | 443);
    FlowHasher::new(seed).hash(&FlowKey::v4(source, destination, ports, 0)).0
}

/// Returns every built-in policy with its own hold, and two of these policies again with each of `holds`. All of them
/// get the maximum number of flows and the same maximum hold.
fn policies() -> Vec<Policy> {
    let holds = [
        Hold::EveryNthPoll(u32::MAX),
        Hold::EveryNPackets(65_536),
        Hold::Within(Duration::from_millis(1)),
        Hold::Within(Duration::from_secs(1)),
        Hold::AUTO,
    ];
    let held = [Policy::linux_gro(), Policy::gallatin_2007()]
        .into_iter()
        .flat_map(|policy| holds.map(|hold| Policy { hold, ..policy }));
    let largest =
        |policy| Policy { flows: FLOWS as u16, max_hold: Duration::from_millis(1), ..policy };
    Policy::all().into_iter().chain(held).map(largest).collect()
}

/// An engine under attack.
struct Victim {
    engine: Engine<Vec<u8>>,
    /// The number of frames received plus the number delivered.
    moved: u64,
    polls: u64,
}

impl Victim {
    fn new(policy: Policy, trust_checksums: bool) -> Self {
        let config =
            Config { batch_frames: SLOTS / 5, trust_checksums, ..Config::new(policy, SEED) };
        Self { engine: Engine::new(config).expect("numbers in range"), moved: 0, polls: 0 }
    }

    /// Sends polls to the engine. Under policies that hold nothing beyond a poll, all polls are parts of a
    /// single poll.
    fn take(&mut self, polls: &[Vec<Vec<u8>>]) {
        for frames in polls {
            self.polls += 1;
            self.moved += frames.len() as u64;
            let now = Instant::from_nanos(self.polls * POLL_NS);
            let mut batch = frames.iter().map(|bytes| Frame::new(bytes.clone(), now)).collect();
            let moved = &mut self.moved;
            let mut sink = |left: Deliveries<'_, Vec<u8>>| {
                *moved += left.iter().flat_map(|one| one.frames()).count() as u64;
            };
            match self.engine.config().policy.hold {
                Hold::EndOfPoll => self.engine.push(&mut batch, now, &mut sink),
                _ => self.engine.poll_under(Some(Load { unread: 1 }), &mut batch, now, &mut sink),
            }
            self.engine.on_timeout(now, sink);
        }
    }

    /// Runs an attack. Returns an error with the figures if the steps exceed the bound.
    fn run_attack(&mut self, assault: &Assault) -> Result<(), String> {
        self.take(&assault.before);
        let (steps, moved, polls) = (work::steps(), self.moved, self.polls);
        self.take(&assault.polls);
        let (steps, moved, polls) = (work::steps() - steps, self.moved - moved, self.polls - polls);
        let is_bounded = steps <= MOST_STEPS_A_FRAME * moved + MOST_STEPS_A_POLL * polls;
        let policy = self.engine.config().policy;
        let why = || {
            let Policy { name, hold, .. } = policy;
            format!("{name}, {hold:?}: {steps} steps, {moved} frames moved in {polls} polls")
        };
        is_bounded.then_some(()).ok_or_else(why)
    }
}

#[test]
fn no_sender_makes_a_frame_or_a_poll_expensive() {
    for adversary in Adversary::ALL {
        let assault = adversary.assault(&hash);
        for policy in policies() {
            let withstood = Victim::new(policy, true).run_attack(&assault);
            assert_eq!(withstood, Ok(()), "{adversary}");
        }
    }
}

/// Deferred work, such as closing gaps, is done in one poll. That poll may exceed the bound for its frames, but
/// only by a few steps per slot, for any arriving frames.
#[test]
fn the_most_that_one_poll_takes_is_a_few_steps_for_each_slot() {
    let mut worst = (0, String::new());
    for adversary in Adversary::ALL {
        let assault = adversary.assault(&hash);
        for policy in policies() {
            let mut victim = Victim::new(policy, true);
            victim.take(&assault.before);
            for poll in &assault.polls {
                let (steps, moved) = (work::steps(), victim.moved);
                victim.take(std::slice::from_ref(poll));
                let (steps, moved) = (work::steps() - steps, victim.moved - moved);
                let Policy { name, hold, .. } = policy;
                let beyond = steps.saturating_sub(MOST_STEPS_A_FRAME * moved + MOST_STEPS_A_POLL);
                let text =
                    || format!("{adversary}, {name}, {hold:?}: {steps} steps, {moved} moved");
                if beyond > worst.0 {
                    worst = (beyond, text());
                }
            }
        }
    }
    std::println!("the worst poll: {}, {} beyond what moved", worst.1, worst.0);
    assert!(worst.0 <= MOST_STEPS_PUT_OFF, "{}", worst.1);
}

#[test]
fn nor_does_any_mixture() {
    for seed in 2..10 {
        let assault = Adversary::Mixed(seed).assault(&hash);
        let policies = policies();
        let policy = policies[seed as usize * 5 % policies.len()];
        assert_eq!(Victim::new(policy, false).run_attack(&assault), Ok(()), "seed {seed}");
    }
}

#[test]
fn a_bucket_that_is_full_is_flushed_for_a_reason_of_its_own() {
    let hold = Hold::Within(Duration::from_secs(1));
    let policy = Policy { hold, flows: FLOWS as u16, ..Policy::linux_gro() };
    let mut victim = Victim::new(policy, true);
    victim.take(&Adversary::Bucket.assault(&hash).polls);
    let counters = victim.engine.counters();
    assert!(counters.flushed(FlushReason::Collision) > 1_000);
    assert_eq!(counters.flushed(FlushReason::Evicted), 0);
}

#[test]
fn those_who_do_not_know_the_seed_collide_with_nobody() {
    for adversary in [Adversary::Thrash, Adversary::Fragments, Adversary::FullSlots] {
        let assault = adversary.assault(&hash);
        for hold in [Hold::EndOfPoll, Hold::Within(Duration::from_secs(1))] {
            let policy = Policy { hold, flows: FLOWS as u16, ..Policy::linux_gro() };
            let mut victim = Victim::new(policy, true);
            victim.take(&assault.before);
            victim.take(&assault.polls);
            assert_eq!(victim.engine.counters().flushed(FlushReason::Collision), 0, "{adversary}");
        }
    }
}

/// Sends one segment of each flow to an engine with `seed`, twice. Returns the steps of the engine and the number of
/// flows that were flushed because their bucket was full.
fn cost(seed: u64, hosts: &[u32]) -> (u64, u64) {
    let hold = Hold::Within(Duration::from_secs(1));
    let policy = Policy { hold, flows: 512, ..Policy::linux_gro() };
    let config = Config { trust_checksums: true, ..Config::new(policy, seed) };
    let mut engine = Engine::new(config).expect("numbers in range");
    let before = work::steps();
    for round in 0..2 {
        for hosts in hosts.chunks(32) {
            let segment = |host: &u32| {
                let segment = seg().host(*host).ports(CLIENT, 443).seq(1 + round * 10).len(10);
                Frame::new(segment.id(round as u16).bytes(), Instant::ZERO)
            };
            let mut batch: Vec<_> = hosts.iter().map(segment).collect();
            engine.poll(&mut batch, Instant::ZERO, |_| {});
        }
    }
    (work::steps() - before, engine.counters().flushed(FlushReason::Collision))
}

/// Sends 4,096 flows that share a bucket under the published seed to engines with that seed and with seeds of
/// their own. Under the published seed, a bucket is always full.
#[test]
fn flows_chosen_against_a_published_seed_cost_what_random_flows_cost() {
    const CHOSEN: usize = 4_096;
    const BUCKET: u64 = 2_047;
    let is_chosen = |host: &u32| hash_with(PUBLISHED_SEED, *host, Some(CLIENT)) & BUCKET == BUCKET;
    let chosen: Vec<u32> = (1 << 20..16 << 20).filter(is_chosen).take(CHOSEN).collect();
    assert_eq!(chosen.len(), CHOSEN);
    let random: Vec<u32> = (1 << 20..).step_by(2_003).take(CHOSEN).collect();
    let (known, collisions) = cost(PUBLISHED_SEED, &chosen);
    assert!(collisions as usize > CHOSEN, "the attack works if the seed is known");
    for seed in 1..=16 {
        let (steps, collisions) = cost(seed, &chosen);
        let (usual, _) = cost(seed, &random);
        assert_eq!(collisions, 0, "seed {seed}");
        assert!(steps <= usual + usual / 50, "seed {seed}: {steps} steps instead of {usual}");
        assert!(steps < known, "seed {seed}: {steps} steps, {known} if it is known");
    }
}

/// Holds as many flows as possible, each with several segments, then runs polls of one frame each.
#[test]
fn what_stays_held_is_not_examined_in_each_poll() {
    let holds = [
        Hold::EveryNthPoll(u32::MAX),
        Hold::EveryNPackets(65_536),
        Hold::Within(Duration::from_secs(1)),
        Hold::Auto { budget: Duration::from_secs(1), most_polls: u32::MAX },
    ];
    for hold in holds {
        let max_hold = Duration::from_secs(1);
        let policy = Policy { hold, max_hold, flows: FLOWS as u16, ..Policy::gallatin_2007() };
        let mut victim = Victim::new(policy, true);
        let segment = |n: u32| {
            let (flow, sent) = (n / 4, n % 4);
            seg().host(flow).seq(1 + sent * 10).id(sent as u16).len(10).bytes()
        };
        let stranger = |n: u32| [seg().host(1 << 20 | n).syn().bytes()].to_vec();
        // Empty polls, from which adaptive hold learns the time between polls.
        (0..64).for_each(|n| victim.take(&[stranger(n)]));
        victim.take(&[(0..4 * FLOWS).map(segment).collect()]);
        let mut quiet = 0;
        for n in 0..64 {
            let (steps, moved) = (work::steps(), victim.moved);
            victim.take(&[stranger(n)]);
            let (steps, moved) = (work::steps() - steps, victim.moved - moved);
            let most = MOST_STEPS_A_FRAME * moved + MOST_STEPS_A_POLL;
            assert!(steps <= most, "{hold:?}: {steps} steps in a poll, {moved} frames moved");
            quiet += u32::from(moved == 2);
        }
        assert!(quiet >= 62, "{hold:?}: what is held stays for a few polls, and leaves in one");
    }
}
