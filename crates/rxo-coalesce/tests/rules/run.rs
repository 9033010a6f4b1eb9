//! Runs a script on the generic tier and records its deliveries.

use rxo_coalesce::Deliveries;
use rxo_coalesce::rules::{RuleEngine, Rules};
use rxo_frame::{Frame, Instant};
use rxo_testkit::promise::{Observed, Shown};
use rxo_testkit::script::{Script, Step};

use crate::harness::settings::config;
use crate::harness::{Numbered, between, note, numbered, totals};

/// Runs `script` and a final flush under `rules`.
pub(crate) fn run<R: Rules>(rules: R, script: &Script) -> Observed {
    let engine = RuleEngine::new(rules, config(&script.setup)).expect("numbers in range");
    let mut run = Run { script, engine, batch: Vec::new(), now: Instant::ZERO };
    let mut observed = Observed::default();
    for step in script.steps.iter().chain(&[Step::Flush]) {
        let before = totals(run.engine.counters());
        observed.steps.push(run.step(step));
        observed.reasons.push(between(&before, &totals(run.engine.counters())));
    }
    assert!(run.engine.is_idle(), "after a flush something is held");
    let counters = run.engine.counters();
    let delivered = counters.bypassed_total() + counters.singles + counters.aggregated_segments;
    assert_eq!((counters.frames, delivered), (script.frame_count() as u64, counters.frames));
    assert_eq!(counters.deliveries, observed.deliveries().count() as u64);
    observed
}

struct Run<'a, R: Rules> {
    script: &'a Script,
    engine: RuleEngine<R, Numbered>,
    batch: Vec<Frame<Numbered>>,
    now: Instant,
}

impl<R: Rules> Run<'_, R> {
    fn step(&mut self, step: &Step) -> Vec<Shown> {
        if let Step::Advance(time) = step {
            return self.advance(self.now + *time);
        }
        let Self { script, engine, batch, now } = self;
        let mut out = Vec::new();
        let mut sink =
            |deliveries: Deliveries<'_, Numbered>| note(script, deliveries, *now, &mut out);
        match step {
            Step::Frame(number) => batch.push(numbered(script.frame(*number), *number)),
            Step::Push => engine.push(batch, *now, sink),
            Step::EndOfPoll => engine.end_of_poll(*now, sink),
            Step::Poll => engine.poll(batch, *now, sink),
            Step::Load(_) | Step::Advance(_) => {}
            Step::Flush => {
                engine.push(batch, *now, &mut sink);
                engine.flush(*now, sink);
            }
        }
        out
    }

    /// Advances time as a caller must: calls the engine at each deadline.
    fn advance(&mut self, until: Instant) -> Vec<Shown> {
        let Self { script, engine, now, .. } = self;
        let mut out = Vec::new();
        engine.on_timeout(*now, |deliveries| note(script, deliveries, *now, &mut out));
        while let Some(deadline) = engine.poll_at().filter(|deadline| *deadline <= until) {
            *now = (*now).max(deadline);
            engine.on_timeout(*now, |deliveries| note(script, deliveries, *now, &mut out));
            let next = engine.poll_at();
            assert!(next.is_none_or(|next| next > *now), "{next:?} is still due at {now:?}");
        }
        *now = until;
        out
    }
}
