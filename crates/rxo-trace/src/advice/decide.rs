//! Decides whether coalescing is worth it: the headline figures, and one sentence.

use super::load::{Cores, Load, fewer_packets};
use super::polls;
use crate::projection::Costs;
use crate::report::{Decision, Outcome, Traffic};
use crate::words::percent;

/// The share of a core that coalescing must save to be worth it.
pub(super) const WORTH_CORES: f64 = 0.01;

/// Returns the decision for `outcome`. `better_poll` is a poll rule with a longer wait that would save more, if there
/// is one.
pub(crate) fn decision(
    traffic: &Traffic,
    outcome: &Outcome,
    (costs, costs_from): (Costs, &str),
    better_poll: Option<&str>,
) -> Decision {
    let cores = Load::of(traffic, costs).map(|load| load.cores(outcome));
    let is_at_most = polls::is_at_most(&outcome.poll);
    let is_worth_it = cores.filter(|_| !is_at_most).map(|cores| cores.saved() >= WORTH_CORES);
    Decision {
        sentence: sentence(outcome, cores, is_at_most, better_poll),
        is_worth_it,
        fewer_packets: fewer_packets(outcome),
        is_at_most,
        cores_without: cores.map(|cores| cores.without),
        cores_with: cores.map(|cores| cores.with),
        hold_p99_ns: outcome.hold_ns.p99,
        poll: outcome.poll.clone(),
        costs,
        costs_from: costs_from.to_owned(),
    }
}

fn sentence(
    outcome: &Outcome,
    cores: Option<Cores>,
    is_at_most: bool,
    better_poll: Option<&str>,
) -> String {
    if outcome.packets == 0 {
        return "There were no packets.".to_owned();
    }
    if outcome.eliminated == 0 {
        return "Not worth it: no two packets can be put together.".to_owned();
    }
    let Some(cores) = cores else {
        return "Whether it is worth it cannot be said: no time passes between the packets, so there \
                is no rate."
            .to_owned();
    };
    if is_at_most {
        return format!(
            "At most: it would save up to {} of a core, but no host waits as long for packets as \
             --poll {}; --poll time:50us says what one would see.",
            percent(cores.saved()),
            outcome.poll
        );
    }
    let better = better_poll.map_or(String::new(), |poll| {
        format!(" A longer wait saves more: --poll {poll} says how much.")
    });
    format!("{}{better}", worth(cores))
}

fn worth(cores: Cores) -> String {
    let saved = cores.saved();
    if saved >= WORTH_CORES {
        format!("Worth it: it saves {} of a core at this rate.", percent(saved))
    } else if saved > 0.0 {
        format!(
            "Not worth it: it saves {} of a core at this rate, less than {}; {} times as much of this \
             traffic would make it worth it.",
            percent(saved),
            percent(WORTH_CORES),
            crate::figure::number((WORTH_CORES / saved).ceil())
        )
    } else {
        "Not worth it: looking at every packet costs more than it saves.".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the decision for a million packets of 1,000 bytes in `seconds` seconds, of which `eliminated` are
    /// eliminated.
    fn decided(seconds: u64, poll: &str, eliminated: u64) -> Decision {
        let traffic = Traffic {
            packets: 1_000_000,
            bytes: 1_000_000_000,
            duration_ns: seconds * 1_000_000_000,
            ..Traffic::default()
        };
        let outcome = Outcome {
            packets: 1_000_000,
            deliveries: 1_000_000 - eliminated,
            eliminated,
            poll: poll.into(),
            ..Outcome::default()
        };
        decision(&traffic, &outcome, (Costs::ASSUMED, "assumed"), None)
    }

    #[test]
    fn cores_are_the_packets_times_their_costs() {
        let decision = decided(10, "time:50us", 500_000);
        // 100,000 packets per second, of 100 + 300 + 800 ns and of 100 + 300 + 30 + 400 ns.
        let near = |left: Option<f64>, right: f64| (left.unwrap() - right).abs() < 1e-9;
        assert!(near(decision.cores_without, 0.12) && near(decision.cores_with, 0.083));
        assert!((decision.fewer_packets - 0.5).abs() < 1e-9 && !decision.is_at_most);
    }

    #[test]
    fn the_sentence_says_whether_it_is_worth_it_and_why() {
        let rows = [
            ((10, "time:50us", 500_000), Some(true), "Worth it: it saves 3.7 % of a core"),
            (
                (1_000, "time:50us", 500_000),
                Some(false),
                "Not worth it: it saves < 0.1 % of a core at this rate, less than 1 %; 28 times",
            ),
            ((10, "time:50us", 10), Some(false), "Not worth it: looking at every packet costs"),
            ((10, "time:50us", 0), Some(false), "Not worth it: no two packets"),
            ((10, "packets:64", 500_000), None, "At most: it would save up to 3.7 % of a core"),
            ((0, "time:50us", 500_000), None, "Whether it is worth it cannot be said"),
        ];
        for ((seconds, poll, eliminated), is_worth_it, begin) in rows {
            let decision = decided(seconds, poll, eliminated);
            assert_eq!(decision.is_worth_it, is_worth_it, "{begin}");
            assert!(decision.sentence.starts_with(begin), "{}", decision.sentence);
        }
    }
}
