//! Rules that give arbitrary answers: the promises hold nevertheless.

use core::time::Duration;

use proptest::prelude::proptest;
use rxo_coalesce::rules::{Flow, Moment, Placement, Release, RuleEngine, Rules};
use rxo_coalesce::{BypassReason, Candidate, Config, FlushReason, Held, Policy};
use rxo_frame::Instant;
use rxo_testkit::script::{property, scripts};
use rxo_wire::{Parsed, SeqNumber};

use crate::harness::settings::config;
use crate::{check_promises, of_segments, run};

/// Rules whose answers depend on nothing but bits of sequence numbers and times.
struct Odd {
    policy: Policy,
    seed: u32,
}

impl Odd {
    fn draw(&self, seq: SeqNumber, salt: u32) -> u32 {
        (seq.0 ^ self.seed.wrapping_mul(salt)).wrapping_mul(2_654_435_761) >> 24
    }
}

impl Rules for Odd {
    type Memory = u32;

    fn policy(&self) -> &Policy {
        &self.policy
    }

    fn candidate(&self, parsed: &Parsed) -> Result<(), BypassReason> {
        if parsed.ip.id % 16 == 3 { Err(BypassReason::PureAck) } else { Ok(()) }
    }

    fn verdict(&self, flow: &mut Flow<'_, u32>, next: &Candidate<'_>) -> Placement {
        *flow.memory += 1;
        match self.draw(next.tcp.seq, *flow.memory) % 8 {
            0 => Placement::Bypass(FlushReason::Order, BypassReason::Ece),
            1 => Placement::Ahead(FlushReason::Window),
            2 | 3 => Placement::Last,
            _ => Placement::InSequence,
        }
    }

    fn close(
        &self,
        run: &Held,
        _: &Candidate<'_>,
        next: Option<&Candidate<'_>>,
    ) -> Option<FlushReason> {
        let draw = self.draw(run.next_seq, 5 + u32::from(next.is_some()));
        draw.is_multiple_of(8).then_some(FlushReason::Flags)
    }

    fn hold(&self, flow: &mut Flow<'_, u32>, moment: Moment, now: Instant) -> Release {
        let first = flow.runs.first().map_or(SeqNumber(0), |run| run.first_seq());
        match self.draw(first, now.as_nanos() as u32 ^ moment_number(moment)) % 8 {
            0 => Release::Runs(1, FlushReason::Flags),
            1 => Release::Runs(100, FlushReason::Flags),
            2 => Release::Runs(0, FlushReason::Flags),
            3 => Release::Nothing(Some(Instant::ZERO)),
            4 => Release::Nothing(Some(now + Duration::from_secs(9))),
            _ => Release::Nothing(None),
        }
    }

    fn rank(&self, flow: &Flow<'_, u32>, _: Instant) -> u8 {
        (*flow.memory % 3) as u8
    }

    fn most_runs(&self) -> usize {
        (self.seed % 5) as usize
    }
}

fn moment_number(moment: Moment) -> u32 {
    match moment {
        Moment::Placed => 1,
        Moment::PacketWindow => 2,
        Moment::EndOfPoll(number) => 3 + number as u32,
        Moment::Due => 4,
    }
}

proptest! {
    #![proptest_config(property(300))]

    #[test]
    fn the_promises_hold_whatever_rules_answer(script in scripts(150)) {
        let script = of_segments(script);
        let policy = config(&script.setup).policy;
        let most_hold = policy.time_limit().unwrap_or(policy.max_hold);
        let rules = Odd { policy, seed: script.setup.seed as u32 };
        let observed = run::run(rules, &script);
        check_promises(&script, &observed, most_hold);
    }
}

/// Rules that ask for memory for so many runs.
struct Many(Policy, usize);

impl Rules for Many {
    type Memory = ();

    fn policy(&self) -> &Policy {
        &self.0
    }

    fn most_runs(&self) -> usize {
        self.1
    }
}

#[test]
fn rules_with_more_runs_than_there_is_memory_for_are_refused() {
    let policy = Policy { flows: 4_096, ..Policy::linux_gro() };
    let made = |runs| RuleEngine::<_, Vec<u8>>::new(Many(policy, runs), Config::new(policy, 1));
    assert!(made(256).is_ok());
    for runs in [257, usize::MAX] {
        let refused = made(runs).err().map(|error| (error.name, error.to));
        assert_eq!(refused, Some(("most_runs", 256)));
    }
}
