//! The poll rules that are compared with the chosen rule: a host that does not wait, like most hosts today, and
//! longer waits.

use super::decide::WORTH_CORES;
use super::load::Delivered;
use crate::projection::Costs;
use crate::report::{Outcome, Traffic, TriedPoll};
use crate::study::PollRule;

/// The poll rule of most hosts today: a poll does not wait, and delivers all packets that have arrived since
/// the previous poll.
const TODAY: &str = "host:1us";

/// The poll rules to try: from a host that receives packets as soon as it can, to the longest wait that is
/// acceptable for interactive traffic. There are only a few, because computing each one takes as much processor
/// time as the report itself.
const RULES: [&str; 5] = [TODAY, "time:20us", "time:50us", "time:100us", "time:500us"];

/// The largest number of poll rules that are compared, the chosen one included.
pub(crate) const MOST_POLLS: usize = RULES.len() + 1;

/// Returns the poll rules to try, including `chosen`, shortest wait first.
pub(super) fn rules(chosen: PollRule) -> Vec<PollRule> {
    let mut rules: Vec<PollRule> = RULES.iter().filter_map(|rule| rule.parse().ok()).collect();
    rules.push(chosen);
    rules.sort_by_key(|rule| match rule {
        PollRule::Host(time) => (0, time.as_nanos()),
        PollRule::Time(time) => (1, time.as_nanos()),
        PollRule::Packets(count) => (2, u128::from(*count)),
    });
    rules.dedup();
    rules
}

/// Returns the result of each poll rule. `chosen` is the rule of the report. `delivered` are the packets that the
/// decision is for, under each rule.
pub(super) fn tried(
    outcomes: &[&Outcome],
    delivered: &[Delivered],
    chosen: &str,
    (traffic, costs): (&Traffic, Costs),
) -> Vec<TriedPoll> {
    let tried = outcomes.iter().zip(delivered).map(|(outcome, delivered)| TriedPoll {
        poll: outcome.poll.clone(),
        fewer_packets: delivered.fewer_packets(),
        packets_per_delivery: delivered.packets_per_delivery(),
        cores_with: delivered.cores(traffic, costs).map(|cores| cores.with),
        hold_p99_ns: outcome.hold_ns.p99,
        is_chosen: outcome.poll == chosen,
        is_hypothetical: is_hypothetical(&outcome.poll),
        is_today: outcome.policy == "linux-gro" && outcome.poll == TODAY,
    });
    tried.collect()
}

/// Returns `true` if no host uses this poll rule. With polls of a fixed number of packets, a host would wait
/// for these packets without limit. The savings under such a rule are no upper bound either, because such a
/// poll may end between two packets that another poll rule puts into one poll.
pub(super) fn is_hypothetical(poll: &str) -> bool {
    matches!(poll.parse(), Ok(PollRule::Packets(_)))
}

/// Returns the first poll rule of `tried` that polls by time and needs less than [`WORTH_CORES`] more cores
/// than the best such rule. `None` if this is also true of the chosen rule, or if the chosen rule is not in
/// `tried` or does not poll by time.
pub(super) fn better(tried: &[TriedPoll]) -> Option<String> {
    let wait = |poll: &TriedPoll| match poll.poll.parse() {
        Ok(PollRule::Time(_)) => poll.cores_with,
        _ => None,
    };
    let chosen = tried.iter().find(|poll| poll.is_chosen).and_then(wait)?;
    let best = tried.iter().filter_map(wait).fold(f64::INFINITY, f64::min);
    if chosen - best < WORTH_CORES {
        return None;
    }
    let enough = tried.iter().find(|poll| wait(poll).is_some_and(|with| with - best < WORTH_CORES));
    enough.map(|poll| poll.poll.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_rule_stands_among_the_others_by_its_wait() {
        let texts = |chosen: &str| -> Vec<String> {
            rules(chosen.parse().unwrap()).iter().map(ToString::to_string).collect()
        };
        assert_eq!(texts("time:50us"), RULES);
        assert_eq!(texts("time:30us")[2], "time:30us");
        assert_eq!(texts("host:2us")[1], "host:2us");
        assert_eq!(texts("packets:20")[5], "packets:20");
    }

    fn poll(poll: &str, cores_with: f64, is_chosen: bool) -> TriedPoll {
        TriedPoll {
            poll: poll.into(),
            cores_with: Some(cores_with),
            is_chosen,
            ..TriedPoll::default()
        }
    }

    #[test]
    fn a_longer_wait_is_better_only_from_one_percent_of_a_core_on() {
        let waits = |chosen: &str| {
            let rows = [
                ("host:1us", 0.9),
                ("time:20us", 0.60),
                ("time:50us", 0.50),
                ("time:100us", 0.405),
                ("time:500us", 0.40),
                ("packets:64", 0.1),
            ];
            better(&rows.map(|(rule, cores)| poll(rule, cores, rule == chosen)))
        };
        assert_eq!(waits("time:50us").as_deref(), Some("time:100us"));
        assert_eq!(waits("time:20us").as_deref(), Some("time:100us"));
        assert_eq!(waits("time:100us"), None);
        assert_eq!(waits("time:500us"), None);
        assert_eq!(waits("packets:64"), None, "no wait was chosen");
    }
}
