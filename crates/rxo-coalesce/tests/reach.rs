//! The random scripts reach every reason to bypass and to flush, and build enough aggregates.
//!
//! A property that never meets its subject proves nothing; these tests detect that.

#[path = "harness/settings.rs"]
mod settings;

use rxo_coalesce::{BypassReason, Counters, Engine, FlushReason};
use rxo_frame::Instant;
use rxo_testkit::Random;
use rxo_testkit::script::{Script, Step};

const SCRIPTS: u64 = 800;
const EVENTS: usize = 150;

/// Runs `script` and returns the engine's counters.
fn counters(script: &Script) -> Counters {
    let mut engine = Engine::new(settings::config(&script.setup)).expect("numbers in range");
    let mut batch = Vec::new();
    let (mut now, mut load) = (Instant::ZERO, None);
    for step in script.steps.iter().chain(&[Step::Flush]) {
        match step {
            Step::Frame(index) => batch.push(script.frame(*index).borrowed()),
            Step::Push => engine.push(&mut batch, now, |_| ()),
            Step::EndOfPoll => engine.end_of_poll(now, |_| ()),
            Step::Load(now_on) => load = *now_on,
            Step::Poll => engine.poll_under(load, &mut batch, now, |_| ()),
            Step::Advance(time) => {
                now = now + *time;
                engine.on_timeout_under(load, now, |_| ());
            }
            Step::Flush => {
                engine.push(&mut batch, now, |_| ());
                engine.flush(now, |_| ());
            }
        }
    }
    engine.counters().clone()
}

/// Builds scripts from random bytes with `make`, a few of them with little memory.
fn scripts(make: impl Fn(&[u8]) -> Script) -> impl Iterator<Item = Script> {
    (0..SCRIPTS).map(move |seed| {
        let mut random = Random::new(seed);
        let bytes: Vec<u8> = (0..8 + 6 * EVENTS).map(|_| random.next() as u8).collect();
        let mut script = make(&bytes);
        if seed.is_multiple_of(8) {
            script.setup.batch_frames = 2;
        }
        script
    })
}

#[test]
fn random_scripts_meet_every_reason_and_aggregates_enough() {
    let data: Vec<Counters> = scripts(Script::from_bytes).map(|script| counters(&script)).collect();
    let acks: Vec<Counters> =
        scripts(Script::acks_from_bytes).map(|script| counters(&script)).collect();
    let sum =
        |all: &[Counters], count: &dyn Fn(&Counters) -> u64| -> u64 { all.iter().map(count).sum() };
    for reason in BypassReason::ALL {
        let count = |counters: &Counters| counters.bypassed(*reason);
        assert!(sum(&data, &count) + sum(&acks, &count) > 0, "no bypass for {}", reason.name());
    }
    // Not reachable by scripts: policy changes (tests/policy_change.rs) and a known seed (src/worst_case.rs).
    let elsewhere = [FlushReason::PolicyChange, FlushReason::Collision];
    for reason in FlushReason::ALL.iter().filter(|reason| !elsewhere.contains(reason)) {
        let count = |counters: &Counters| counters.flushed(*reason);
        assert!(sum(&data, &count) + sum(&acks, &count) > 0, "no flush for {}", reason.name());
    }
    let (frames, merged) = (sum(&data, &|of| of.frames), sum(&data, &|of| of.aggregated_segments));
    assert!(merged * 4 > frames, "only {merged} of {frames} frames are merged");
    let (inside, made) =
        (sum(&data, &|of| of.tunnelled), sum(&data, &|of| of.tunnelled_deliveries));
    assert!(inside > 3_000 && made * 3 < inside * 2, "of {inside} in tunnels {made} are left");
    let (frames, merged) = (sum(&acks, &|of| of.pure_acks()), sum(&acks, &|of| of.aggregated_acks));
    assert!(merged * 5 > frames, "only {merged} of {frames} pure ACKs are aggregated");
}
