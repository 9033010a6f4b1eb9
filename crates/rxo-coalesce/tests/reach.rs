//! The random scripts reach everything: every reason to bypass and to flush, and aggregates enough.
//!
//! A property that never meets what it speaks of holds for nothing; this is where it would show.

#[path = "harness/settings.rs"]
mod settings;

use rxo_coalesce::{BypassReason, Counters, Engine, FlushReason, PureAckRule};
use rxo_frame::Instant;
use rxo_testkit::Random;
use rxo_testkit::script::{Script, Step};

const SCRIPTS: u64 = 600;
const EVENTS: usize = 150;
const PURE_ACKS: [PureAckRule; 3] = [PureAckRule::Bypass, PureAckRule::Single, PureAckRule::Record];

/// Runs `script` and gives the engine's counters.
fn counters(script: &Script, seed: u64) -> Counters {
    let mut config = settings::config(&script.setup);
    config.policy.pure_acks = PURE_ACKS[seed as usize % PURE_ACKS.len()];
    config.policy.max_acks = 2;
    let mut engine = Engine::new(config).expect("numbers in range");
    let mut batch = Vec::new();
    let mut now = Instant::ZERO;
    for step in script.steps.iter().chain(&[Step::Flush]) {
        match step {
            Step::Frame(index) => batch.push(script.frame(*index).borrowed()),
            Step::Push => engine.push(&mut batch, now, |_| ()),
            Step::EndOfPoll => engine.end_of_poll(now, |_| ()),
            Step::Poll => engine.poll(&mut batch, now, |_| ()),
            Step::Advance(time) => {
                now = now + *time;
                engine.on_timeout(now, |_| ());
            }
            Step::Flush => {
                engine.push(&mut batch, now, |_| ());
                engine.flush(now, |_| ());
            }
        }
    }
    engine.counters().clone()
}

fn script(seed: u64) -> Script {
    let mut random = Random::new(seed);
    let bytes: Vec<u8> = (0..8 + 6 * EVENTS).map(|_| random.next() as u8).collect();
    let mut script = Script::from_bytes(&bytes);
    if seed.is_multiple_of(8) {
        script.setup.batch_frames = 2;
    }
    script
}

#[test]
fn random_scripts_meet_every_reason_and_aggregates_enough() {
    let all: Vec<Counters> = (0..SCRIPTS).map(|seed| counters(&script(seed), seed)).collect();
    for reason in BypassReason::ALL {
        let times: u64 = all.iter().map(|counters| counters.bypassed(*reason)).sum();
        assert!(times > 0, "no script bypasses for {}", reason.name());
    }
    for reason in FlushReason::ALL {
        let times: u64 = all.iter().map(|counters| counters.flushed(*reason)).sum();
        assert!(times > 0, "no script flushes for {}", reason.name());
    }
    let frames: u64 = all.iter().map(|counters| counters.frames).sum();
    let merged: u64 = all.iter().map(|counters| counters.aggregated_segments).sum();
    assert!(merged * 4 > frames, "only {merged} of {frames} frames are merged");
}
