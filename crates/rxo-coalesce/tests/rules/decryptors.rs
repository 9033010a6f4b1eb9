//! Parallel decryptors, as in a tunnel with several threads. Each packet takes its decryptor another time, so
//! packets leave in another order than they arrived in.

use rxo_coalesce::Policy;
use rxo_coalesce::rules::Juggler;
use rxo_frame::{Frame, Instant};
use rxo_testkit::promise::Observed;
use rxo_testkit::script::{Script, Setup, Step};
use rxo_testkit::{Random, seg};

use crate::order::late_segments;
use crate::{check_oracle, check_promises, run};

const SEGMENTS: u32 = 4_000;
const PAYLOAD: usize = 1_400;
/// The time between two packets from the wire, and between two polls of what was decrypted, in nanoseconds.
const EVERY_NS: u64 = 1_200;
const POLL_NS: u64 = 20_000;

/// Returns `SEGMENTS` segments of a flow, dealt to `threads` decryptors in turn, in the order in which these
/// finish them. A packet takes two thirds of the time that `threads` have for it; one in 64 takes twenty
/// times as long, because its thread was not scheduled.
fn decrypted(threads: usize, seed: u64) -> Vec<(u64, u32)> {
    let mut random = Random::new(seed);
    let mut free_at_ns = vec![0; threads];
    let mut finished: Vec<(u64, u32)> = (0..SEGMENTS)
        .map(|n| {
            let came_ns = u64::from(n) * EVERY_NS;
            let budget_ns = EVERY_NS * threads as u64;
            let late = if random.next().is_multiple_of(64) { 20 } else { 1 };
            let takes_ns = late * (budget_ns / 3 + random.next() % (budget_ns / 3));
            let thread = &mut free_at_ns[n as usize % threads];
            *thread = came_ns.max(*thread) + takes_ns;
            (*thread, n)
        })
        .collect();
    finished.sort_unstable();
    finished
}

/// Returns a script that polls what was decrypted every 20 µs.
fn script(finished: &[(u64, u32)]) -> Script {
    let frame = |(at, n): &(u64, u32)| Frame {
        arrived_at: Instant::from_nanos(*at),
        ..seg().seq(n.wrapping_mul(PAYLOAD as u32)).len(PAYLOAD).id(*n as u16).frame()
    };
    let frames = finished.iter().map(frame).collect();
    let mut script = Script::one_poll(Setup::new("linux-gro"), frames);
    script.steps.clear();
    let mut until_ns = 0;
    for (number, (at, _)) in finished.iter().enumerate() {
        while *at >= until_ns {
            script
                .steps
                .extend([Step::Poll, Step::Advance(core::time::Duration::from_nanos(POLL_NS))]);
            until_ns += POLL_NS;
        }
        script.steps.push(Step::Frame(number));
    }
    script
}

/// Returns the segments per delivery and the number of segments that were delivered too late.
fn figures(script: &Script, observed: &Observed) -> (f64, usize) {
    let deliveries = observed.deliveries().count();
    let late = late_segments(script, &observed.frame_order());
    (f64::from(SEGMENTS) / deliveries as f64, late)
}

#[test]
fn the_order_of_parallel_decryptors_is_restored() {
    for threads in [2, 4, 8] {
        let script = script(&decrypted(threads, 7));
        let gro = figures(&script, &run::run(Policy::linux_gro(), &script));
        let mut rules = Juggler::new();
        rules.ofo_timeout = core::time::Duration::from_micros(200);
        let observed = run::run(rules.clone(), &script);
        check_promises(&script, &observed, rules.policy.max_hold);
        let juggler = figures(&script, &observed);
        assert!(gro.1 > SEGMENTS as usize / 20, "{threads} threads: {gro:?} is no disorder");
        assert_eq!(juggler.1, 0, "{threads} threads");
        assert!(juggler.0 > 3.0 * gro.0, "{threads} threads: {juggler:?}, without {gro:?}");
    }
}

/// A shorter script, because the oracle forms all runs anew for each question.
#[test]
fn decrypted_packets_come_out_as_the_oracle_expects() {
    let mut finished = decrypted(4, 3);
    finished.truncate(300);
    let script = script(&finished);
    check_oracle(&Juggler::new(), &script, &run::run(Juggler::new(), &script));
}
