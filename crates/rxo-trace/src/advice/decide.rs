//! Decides whether coalescing is worth it: computes the headline figures and the sentence that states the decision.

use rxo_coalesce::BypassReason;

use super::load::Cores;
use super::polls;
use super::scope::{Scope, by_receiver, several};
use crate::projection::Costs;
use crate::report::{Checksums, Decision, Outcome, Receiver, Traffic};
use crate::words::{agreeing, count, duration, percent, plural};

/// The share of a core that coalescing must save to be worth using.
pub(super) const WORTH_CORES: f64 = 0.01;

/// Returns the decision for `outcome`. `better_poll` is a poll rule with a longer wait that would save more, if there
/// is one. `receivers` are the addresses that receive most, the capturing host first; empty if the host receives all. With
/// them is `true` if no packet has a VLAN tag.
pub(crate) fn decision(
    traffic: &Traffic,
    outcome: &Outcome,
    (costs, costs_from): (Costs, &str),
    better_poll: Option<&str>,
    (receivers, is_untagged): (Vec<Receiver>, bool),
) -> Decision {
    let scope = Scope::of(traffic, outcome, costs, &receivers);
    let cores = scope.cores;
    let is_hypothetical = polls::is_hypothetical(&outcome.poll);
    let refusal = unanswerable_reason(traffic, outcome, &scope);
    let is_worth = |cores: Cores| cores.saved() >= WORTH_CORES;
    let is_plain = is_untagged && traffic.encapsulations.is_empty();
    let is_worth_together = cores.is_some_and(is_worth);
    let each = by_receiver(&receivers, is_plain, is_worth_together).filter(|_| !is_hypothetical);
    let is_decided = !is_hypothetical && refusal.is_none() && each.is_none();
    let several = if each.is_none() { several(&receivers) } else { "" };
    let sentence = || {
        let sentence =
            each.unwrap_or_else(|| sentence(&scope, outcome, is_hypothetical, better_poll));
        let while_packets_come = while_packets_come(traffic, cores);
        let accepted = accepted(traffic);
        format!("{sentence}{}{several}{while_packets_come}{accepted}", scope.remark)
    };
    Decision {
        sentence: refusal.unwrap_or_else(sentence),
        is_worth_it: cores.filter(|_| is_decided).map(is_worth),
        packets: scope.packets,
        deliveries: scope.deliveries,
        fewer_packets: scope.fewer_packets(),
        is_hypothetical,
        cores_without: cores.map(|cores| cores.without),
        cores_with: cores.map(|cores| cores.with),
        hold_p99_ns: outcome.hold_ns.p99,
        poll: outcome.poll.clone(),
        costs,
        costs_from: costs_from.to_owned(),
        receivers,
    }
}

/// Returns the reason why the capture permits no decision, with the remedy; `None` if a decision is possible.
fn unanswerable_reason(traffic: &Traffic, outcome: &Outcome, scope: &Scope) -> Option<String> {
    nothing_received(traffic, scope)
        .or_else(|| merged(traffic))
        .or_else(|| twice(traffic))
        .or_else(|| sealed(traffic))
        .or_else(|| unreadable(traffic, outcome, scope))
        .or_else(|| several_clocks(traffic))
        .or_else(|| coarse_clock(traffic))
        .or_else(|| incomplete(traffic))
}

/// Returns the reason to refuse a decision if the host on which the capture was taken receives no packets in
/// the capture, or none that the filter accepts; otherwise `None`.
fn nothing_received(traffic: &Traffic, scope: &Scope) -> Option<String> {
    let Traffic { packets, sent_packets, filtered_packets, .. } = *traffic;
    let sent = sent_packets.saturating_add(packets);
    let sentence = || {
        match filtered_packets {
        0 => format!(
            "This capture cannot say: the host on which it was taken sent all of its {}, and received none. \
             Capture what the host receives (tcpdump -Q in).",
            plural(sent, "packet")
        ),
        _ => "This capture cannot say: --flow accepts none of the packets that the host receives. Try another filter."
            .to_owned(),
    }
    };
    (scope.packets == 0 && sent.saturating_add(filtered_packets) > 0).then(sentence)
}

/// Returns the reason to refuse a decision if the capture contains many packets twice; otherwise `None`.
pub(super) fn twice(traffic: &Traffic) -> Option<String> {
    let Traffic { duplicate_packets, are_duplicates_left_out, packets, .. } = *traffic;
    (!are_duplicates_left_out && is_significant(duplicate_packets, packets)).then(|| {
        format!(
            "This capture cannot say as it is: {} of its packets are in it twice, as from a mirror port, or from `-i any` \
             on a bridge. --dedup leaves the duplicates out.",
            percent(duplicate_packets as f64 / packets.max(1) as f64)
        )
    })
}

/// Returns the reason to refuse a decision if most packets are in an encapsulation that cannot be read;
/// otherwise `None`.
pub(super) fn sealed(traffic: &Traffic) -> Option<String> {
    let Traffic { sealed_packets, packets, .. } = *traffic;
    (sealed_packets > packets / 2).then(|| {
        format!(
            "This capture cannot say: {} of its packets are in an encapsulation that cannot be read. Capture where it \
             ends, on the host's own interface.",
            percent(sealed_packets as f64 / packets.max(1) as f64)
        )
    })
}

/// Returns the reason to refuse a decision if many packets could not be read, although the host reads them;
/// otherwise `None`. Wrong checksums of packets that the host sent do not matter: its card was to complete them.
fn unreadable(traffic: &Traffic, outcome: &Outcome, scope: &Scope) -> Option<String> {
    let Traffic { unknown_link_packets, unserved_packets, cut_packets, packets, .. } = *traffic;
    let others = packets.saturating_sub(scope.packets);
    let bypassed = |reason: BypassReason| {
        let found = outcome.bypassed.iter().find(|one| one.reason == reason.name());
        found.map_or(0, |one| one.count)
    };
    let rows = [
        (
            unknown_link_packets,
            packets,
            "packets have a link type that rxo does not read. Capture on the host's own interface (tcpdump -i IF)",
        ),
        (
            unserved_packets,
            packets,
            "packets came on more interfaces than there is memory for. Capture on fewer interfaces, or use --no-advice",
        ),
        (
            bypassed(BypassReason::Malformed).min(cut_packets),
            packets,
            "packets were cut before the end of their headers. Capture more of each packet (tcpdump -s 128)",
        ),
        (
            bypassed(BypassReason::BadIpChecksum).saturating_sub(others),
            scope.packets,
            "packets have a wrong IPv4 header checksum, as on a sender whose card completes it, or where addresses were \
             changed. Capture on the receiving host, or repair a copy (tcprewrite --fixcsum)",
        ),
        (
            traffic.checksums.wrong.saturating_sub(others),
            scope.packets,
            "packets have a wrong TCP or UDP checksum, as where addresses were changed. --checksum trust verifies none",
        ),
    ];
    let (part, all, what) = rows.into_iter().find(|(part, all, _)| is_significant(*part, *all))?;
    let share = percent(part as f64 / all.max(1) as f64);
    Some(format!("This capture cannot say: {share} of its {what}."))
}

/// Returns the reason to refuse a decision if the time goes back by more than a second at every 500th packet or more often,
/// because every such step ends a poll. A clock that is set a few times, or captures that were appended to each other, do not
/// matter. Otherwise returns `None`.
fn several_clocks(traffic: &Traffic) -> Option<String> {
    const FEW: u64 = 10;
    let Traffic { clock_sets, packets, .. } = *traffic;
    (clock_sets >= FEW && clock_sets >= packets / 500).then(|| {
        format!(
            "This capture cannot say: its time goes back by more than a second {} times, as where the clocks of interfaces \
             differ. Capture on one interface (tcpdump -i IF), or take one from this capture (tshark -r FILE -Y \
             frame.interface_id==0 -w ONE).",
            count(clock_sets)
        )
    })
}

/// Returns the reason to refuse a decision if the clock of the capture has ticks that are longer than polls: many
/// packets have one time, and hardly any comes shortly after another. Otherwise `None`.
fn coarse_clock(traffic: &Traffic) -> Option<String> {
    let Traffic { simultaneous_packets, close_packets, packets, active_ns, .. } = *traffic;
    let is_coarse = is_significant(simultaneous_packets, packets)
        && close_packets < simultaneous_packets / 100
        && active_ns > 0;
    is_coarse.then(|| {
        format!(
            "This capture cannot say: its clock is too coarse. {} of its packets have the time of the packet before, and \
             {} came less than 50 µs after another. Capture with times in microseconds or finer.",
            percent(simultaneous_packets as f64 / packets.max(1) as f64),
            if close_packets == 0 { "none".to_owned() } else { count(close_packets) }
        )
    })
}

/// Returns the reason to refuse a decision if the capture lacks a twentieth of the TCP payload or more, because every
/// gap ends an aggregate. Otherwise `None`.
fn incomplete(traffic: &Traffic) -> Option<String> {
    let Traffic { missing_bytes, tcp_payload_bytes, .. } = *traffic;
    let all_bytes = tcp_payload_bytes.saturating_add(missing_bytes);
    (missing_bytes > 0 && missing_bytes >= all_bytes / 20).then(|| {
        format!(
            "This capture cannot say: {} of the TCP payload is missing between other payload and is never sent again, so \
             the capturing program lost it. Capture less of each packet, with more memory (tcpdump -s 128 -B 65536).",
            percent(missing_bytes as f64 / all_bytes.max(1) as f64)
        )
    })
}

/// Returns the reason to refuse a decision if many packets were merged before the capture; otherwise `None`.
fn merged(traffic: &Traffic) -> Option<String> {
    let Traffic { super_packets, super_bytes, merged_packets, merged_bytes, bytes, .. } = *traffic;
    let all_bytes = super_bytes.saturating_add(merged_bytes);
    let what = if super_bytes >= merged_bytes {
        "that [is|are] larger than any link allows, so [it was|they were] merged before the capture, or not yet segmented"
    } else {
        "that [was|were] merged before the capture, as the numbers of the packets after [it|them] show (or [its|their] length)"
    };
    is_significant(all_bytes, bytes).then(|| {
        let text = format!(
            "This capture cannot say: {} of its bytes are in {{}} [packet|packets] {what}. Capture again after `ethtool -K IF \
             gro off lro off tso off gso off`, or use `rxo analyze --live IF`.",
            percent(all_bytes as f64 / bytes.max(1) as f64),
        );
        agreeing(super_packets.saturating_add(merged_packets), &text)
    })
}

/// Returns a sentence on checksums that were accepted although they could not be verified; an empty string if
/// these checksums were few, or if the checksum mode is not `auto`.
fn accepted(traffic: &Traffic) -> String {
    let Checksums { ref mode, unfinished, cut, right, wrong, .. } = traffic.checksums;
    let all = right + wrong + unfinished + cut;
    let what = match (is_significant(unfinished, all), is_significant(cut, all)) {
        _ if mode != "auto" => return String::new(),
        (true, true) => "that were not finished, or whose packets were cut,",
        (true, false) => "that were not finished",
        (false, true) => "of packets that were cut",
        (false, false) => return String::new(),
    };
    format!(" Checksums {what} when the capture was taken count as right.")
}

/// Returns a sentence about the pauses without packets if the pauses take much of the capture's time; otherwise
/// an empty string.
fn while_packets_come(traffic: &Traffic, cores: Option<Cores>) -> String {
    let Traffic { duration_ns, active_ns, .. } = *traffic;
    let pauses_ns = duration_ns.saturating_sub(active_ns);
    if cores.is_none() || !is_significant(pauses_ns, duration_ns) {
        return String::new();
    }
    format!(
        " The rate is that of {} in which packets came, of {}.",
        duration(active_ns as f64),
        duration(duration_ns as f64)
    )
}

/// Returns `true` if `part` is at least a tenth of `all`. The reader of a report must know of such a part
/// before the result.
pub(super) const fn is_significant(part: u64, all: u64) -> bool {
    part > 0 && part >= all / 10
}

fn sentence(
    scope: &Scope,
    outcome: &Outcome,
    is_hypothetical: bool,
    better_poll: Option<&str>,
) -> String {
    if scope.packets == 0 {
        return "There were no packets.".to_owned();
    }
    let Some(cores) = scope.cores else {
        return "Whether it is worth it cannot be said: no time passes between the packets, so there \
                is no rate."
            .to_owned();
    };
    let better = better_poll.map_or(String::new(), |poll| {
        format!(" A longer wait saves more: --poll {poll} says how much.")
    });
    if scope.packets == scope.deliveries {
        return format!("{NOTHING}{better}");
    }
    if is_hypothetical {
        return format!(
            "No prediction: it would save {} of a core if a host waited for packets as long as --poll {} does, which none does; \
             --poll time:50us says what one would see.",
            percent(cores.saved()),
            outcome.poll
        );
    }
    format!("{}{better}", format_savings(cores, true))
}

const NOTHING: &str = "Not worth it: no two packets of a poll can be put together.";

/// Returns the sentence that states the decision, given the numbers of busy cores in `cores`. `any` is `true`
/// if coalescing eliminates any packet.
pub(super) fn format_savings(cores: Cores, any: bool) -> String {
    let saved = cores.saved();
    if !any {
        NOTHING.to_owned()
    } else if saved >= WORTH_CORES {
        format!("Worth it: it saves {} of a core at this rate.", percent(saved))
    } else if saved > 0.0 {
        let shown = match percent(saved) {
            same if same == percent(WORTH_CORES) => format!("{} %", (1e4 * saved).floor() / 100.0),
            other => other,
        };
        format!(
            "Not worth it: it saves {shown} of a core at this rate, less than {}; {} times as much of this \
             traffic would make it worth it.",
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

    /// Returns the decision for a million packets of 1,000 bytes in `seconds` seconds; coalescing eliminates
    /// `eliminated` of them.
    fn decided(seconds: u64, poll: &str, eliminated: u64) -> Decision {
        let traffic = Traffic {
            packets: 1_000_000,
            bytes: 1_000_000_000,
            duration_ns: seconds * 1_000_000_000,
            active_ns: seconds * 1_000_000_000,
            ..Traffic::default()
        };
        let outcome = Outcome {
            packets: 1_000_000,
            deliveries: 1_000_000 - eliminated,
            eliminated,
            poll: poll.into(),
            ..Outcome::default()
        };
        decision(&traffic, &outcome, (Costs::ASSUMED, "assumed"), None, (Vec::new(), true))
    }

    #[test]
    fn cores_are_the_packets_times_their_costs() {
        let decision = decided(10, "time:50us", 500_000);
        // 100,000 packets per second, of 100 + 300 + 800 ns and of 100 + 300 + 30 + 400 ns.
        let near = |left: Option<f64>, right: f64| (left.unwrap() - right).abs() < 1e-9;
        assert!(near(decision.cores_without, 0.12) && near(decision.cores_with, 0.083));
        assert!((decision.fewer_packets - 0.5).abs() < 1e-9 && !decision.is_hypothetical);
    }

    #[test]
    fn a_filter_that_accepts_nothing_is_not_a_host_that_receives_nothing() {
        let traffic = Traffic { sent_packets: 9, filtered_packets: 5, ..Traffic::default() };
        let (costs, outcome) = ((Costs::ASSUMED, "assumed"), Outcome::default());
        let said = decision(&traffic, &outcome, costs, None, (Vec::new(), true));
        assert!(said.sentence.contains("--flow accepts none of the packets"), "{said:?}");
        assert_eq!(said.is_worth_it, None);
    }

    #[test]
    fn a_longer_wait_is_named_where_the_chosen_one_gains_nothing() {
        let time_ns = 1_000_000_000;
        let traffic = Traffic {
            packets: 20_000,
            bytes: 20_000_000,
            duration_ns: time_ns,
            active_ns: time_ns,
            ..Traffic::default()
        };
        let outcome = Outcome { packets: 20_000, deliveries: 20_000, ..Outcome::default() };
        let (costs, longer) = ((Costs::ASSUMED, "assumed"), Some("time:500us"));
        let said = decision(&traffic, &outcome, costs, longer, (Vec::new(), true)).sentence;
        assert!(said.starts_with("Not worth it: no two packets of a poll "), "{said}");
        assert!(said.ends_with("saves more: --poll time:500us says how much."), "{said}");
    }

    #[test]
    fn super_packets_cannot_say() {
        let traffic =
            Traffic { bytes: 1_000, super_bytes: 400, active_ns: 9, ..Traffic::default() };
        let outcome = Outcome { packets: 10, deliveries: 10, ..Outcome::default() };
        let decision =
            decision(&traffic, &outcome, (Costs::ASSUMED, "assumed"), None, (Vec::new(), true));
        assert!(decision.is_worth_it.is_none());
        assert!(decision.sentence.starts_with("This capture cannot say: 40 %"), "{decision:?}");
    }

    #[test]
    fn what_was_accepted_and_what_was_left_out_stand_behind_the_decision() {
        let checksums =
            Checksums { mode: "auto".into(), unfinished: 9, right: 1, ..Checksums::default() };
        let (second, hour) = (1_000_000_000, 3_600_000_000_000);
        let traffic = Traffic {
            packets: 1_000,
            bytes: 1_000_000,
            active_ns: second,
            duration_ns: hour,
            checksums,
            ..Traffic::default()
        };
        let outcome =
            Outcome { packets: 1_000, deliveries: 100, eliminated: 900, ..Outcome::default() };
        let costs = (Costs::ASSUMED, "assumed");
        let said = decision(&traffic, &outcome, costs, None, (Vec::new(), true)).sentence;
        assert!(
            said.contains("The rate is that of 1 s in which packets came, of 3,600 s"),
            "{said}"
        );
        assert!(
            said.ends_with("not finished when the capture was taken count as right."),
            "{said}"
        );
    }

    #[test]
    fn a_saving_just_below_the_threshold_is_not_shown_as_the_threshold() {
        let saved = |share: f64| format_savings(Cores { without: share, with: 0.0 }, true);
        assert!(saved(0.009_99).starts_with("Not worth it: it saves 0.99 % of a core"));
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
            ((10, "packets:64", 500_000), None, "No prediction: it would save 3.7 % of a core if"),
            ((0, "time:50us", 500_000), None, "Whether it is worth it cannot be said"),
        ];
        for ((seconds, poll, eliminated), is_worth_it, begin) in rows {
            let decision = decided(seconds, poll, eliminated);
            assert_eq!(decision.is_worth_it, is_worth_it, "{begin}");
            assert!(decision.sentence.starts_with(begin), "{}", decision.sentence);
        }
    }
}
