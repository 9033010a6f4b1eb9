//! The notes of a report: facts and remedies for the user, one sentence each.

use crate::report::{Checksums, Encapsulation, Report, Traffic};
use crate::words::{agreeing, count, form, plural};

/// The minimum number of unfinished checksums for which the report has a note. Fewer may be a coincidence,
/// because one in 32,768 wrong checksums looks unfinished.
const MANY: u64 = 3;

/// Returns the notes for a report that is otherwise complete.
pub(super) fn of(report: &Report) -> Vec<String> {
    let traffic = &report.traffic;
    [
        offload(&traffic.checksums),
        wrong(&traffic.checksums),
        cut(traffic),
        counted(traffic.short_packets, SHORT),
        counted(traffic.super_packets, SUPER_PACKETS),
        counted(traffic.merged_packets, MERGED),
        udp(report),
        tunnels(report),
        encapsulations(traffic),
        counted(traffic.sealed_packets, SEALED),
        duplicates(traffic),
        untracked(traffic),
        counted(traffic.unserved_packets, UNSERVED),
        counted(traffic.unknown_link_packets, UNKNOWN_LINK),
        counted(traffic.steps_back, STEPS_BACK),
        waiting(report),
        overruns(report),
        cuts(report),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns `text` for `number`, as a note; `None` if `number` is 0.
fn counted(number: u64, text: &str) -> Option<String> {
    (number > 0).then(|| agreeing(number, text))
}

const SHORT: &str = "{} [packet is|packets are] shorter than [its|their] IP header says, although the capture calls [it|them] complete: \
                     [it counts|they count] with the length in [its|their] header, and as truncated";
const SUPER_PACKETS: &str = "{} [packet is|packets are] larger than any link allows: [it was|they were] captured before the sender's card segmented \
     [it|them], or after the receiver merged [it|them]; to capture the wire's packets, first run `ethtool -K IF gro off lro off tso off gso off`";
const MERGED: &str = "{} [packet was|packets were] merged from several segments before the capture, although a link could carry [it|them]: to capture the \
     wire's packets, first run `ethtool -K IF gro off lro off`";
const SEALED: &str = "{} [packet is|packets are] in an encapsulation that cannot be read, and passed unchanged: encrypted, or not IP";
const UNSERVED: &str = "{} [packet|packets] came on interfaces for which there was no memory, and passed unchanged; --no-advice or fewer sweep values \
     leave room for more";
const UNKNOWN_LINK: &str = "{} [packet has|packets have] an unknown link type (known are Ethernet, Linux cooked, raw IP, loopback, PPP and 802.11), and passed \
     unchanged";
const STEPS_BACK: &str =
    "the capture's time went back {} [time|times]; it was treated as standing still there";

fn offload(checksums: &Checksums) -> Option<String> {
    let Checksums { unfinished, sender_offload, mode, .. } = checksums;
    let first = sender_offload.first().filter(|_| *unfinished >= MANY)?;
    let who = match sender_offload.len() {
        1 => format!("all from {}", first.address),
        2 => format!("from {} and {}", first.address, sender_offload.get(1)?.address),
        hosts => format!("from {hosts} hosts, most from {}", first.address),
    };
    let done = match mode.as_str() {
        "auto" => "they count as right; --checksum verify refuses them",
        "partial" => "they were accepted (--checksum partial)",
        _ => {
            "packets with one were not coalesced; --checksum partial accepts them, \
             --checksum trust verifies none"
        }
    };
    Some(format!(
        "{} checksums were left for the sender's card to complete ({who}): the capture \
         was taken on the sending machine; {done}",
        count(*unfinished)
    ))
}

fn wrong(checksums: &Checksums) -> Option<String> {
    let Checksums { wrong, right, .. } = *checksums;
    (wrong > 0).then(|| {
        format!(
            "{} of {} {} wrong; packets with a wrong one were not coalesced",
            count(wrong),
            plural(wrong + right, "checksum"),
            form(wrong, "is", "are")
        )
    })
}

fn cut(traffic: &Traffic) -> Option<String> {
    let Traffic { cut_packets, checksums, .. } = traffic;
    let done = match checksums.mode.as_str() {
        "auto" => {
            "[its checksum counts|their checksums count] as right; --checksum verify refuses [it|them]"
        }
        "trust" => "[it was|they were] coalesced without verification (--checksum trust)",
        _ => {
            "[its checksum|their checksums] cannot be verified, so [it was|they were] not coalesced; --checksum trust does, \
             or capture whole packets (tcpdump -s 0)"
        }
    };
    (checksums.cut > 0).then(|| {
        agreeing(*cut_packets, &format!("the capture truncated {{}} [packet|packets]: {done}"))
    })
}

/// Returns the note that not every host accepts coalesced datagrams; `None` if no datagrams were coalesced.
fn udp(report: &Report) -> Option<String> {
    let setting = report.outcome.settings.iter().find(|(name, _)| name == "udp");
    let is_on = setting.is_some_and(|(_, value)| value == "equal");
    (is_on && report.traffic.udp_packets > 0).then(|| {
        "UDP is coalesced for a receiver that can segment it again, such as a TAP device of Linux 6.2 or later; \
         the GRO of Linux itself coalesces it only for sockets with UDP_GRO, or with \
         `ethtool -K IF rx-udp-gro-forwarding on`; --set udp=off leaves it out"
            .to_owned()
    })
}

/// Returns the note that not every host accepts TCP that is coalesced inside tunnels; `None` if no TCP was
/// coalesced inside tunnels.
fn tunnels(report: &Report) -> Option<String> {
    let outcome = &report.outcome;
    (outcome.tunnelled > outcome.tunnelled_deliveries).then(|| {
        "TCP inside VXLAN and Geneve is coalesced for a receiver that can segment it again, such as a TAP device of \
         Linux 6.17 or later; the GRO of Linux itself does it where it ends the tunnel; --set tunnels=off leaves it out"
            .to_owned()
    })
}

/// Returns the note that encapsulations were removed from packets; `None` if there were only encapsulations
/// that the engine itself reads.
fn encapsulations(traffic: &Traffic) -> Option<String> {
    let is_removed = |one: &&Encapsulation| !matches!(one.name.as_str(), "VXLAN" | "Geneve");
    let removed: Vec<String> = traffic
        .encapsulations
        .iter()
        .filter(is_removed)
        .map(|one| format!("{} in {}", count(one.packets), one.name))
        .collect();
    (!removed.is_empty()).then(|| {
        format!(
            "of {} {}: the packets inside were coalesced, as a host does that ends the tunnel or the link",
            plural(traffic.packets, "packet"),
            removed.join(", ")
        )
    })
}

fn duplicates(traffic: &Traffic) -> Option<String> {
    let Traffic { duplicate_packets, are_duplicates_left_out, .. } = *traffic;
    let done = if are_duplicates_left_out {
        "[was|were] left out (--dedup)"
    } else {
        "--dedup leaves [it|them] out"
    };
    let text = format!(
        "{{}} [packet is|packets are] in the capture twice within a millisecond, as from a mirror port or from `-i any` on a \
         bridge: {done}"
    );
    counted(duplicate_packets, &text)
}

fn untracked(traffic: &Traffic) -> Option<String> {
    let Traffic { untracked_packets, flows, .. } = traffic;
    (*untracked_packets > 0).then(|| {
        format!(
            "there are more than {}; the {} of later flows {} in all totals, but in no flow's figures; --flow selects \
             fewer",
            plural(*flows, "flow"),
            plural(*untracked_packets, "packet"),
            form(*untracked_packets, "counts", "count")
        )
    })
}

/// Returns the note that polls of a fixed number of packets wait for these packets without a time limit; `None`
/// for other poll rules.
fn waiting(report: &Report) -> Option<String> {
    const LONG_NS: u64 = 1_000_000;
    let outcome = &report.outcome;
    let counts_packets = outcome.poll.starts_with("packets:");
    (counts_packets && outcome.hold_ns.p99 > LONG_NS).then(|| {
        format!(
            "--poll {} waits for that many packets, which is longer here than a host would wait: packets \
             eliminated and hold times are no prediction; --poll host:1us \
             and time:50us follow the capture's clock",
            outcome.poll
        )
    })
}

fn overruns(report: &Report) -> Option<String> {
    let overruns = report.outcome.ring_overruns;
    (overruns > 0).then(|| {
        format!(
            "{} began early because 4,096 packets waited; a real receive ring would \
             have lost packets with --poll {}",
            plural(overruns, "poll"),
            report.outcome.poll
        )
    })
}

/// Returns the note that the number of eliminated packets is not exact, because the capture was split at pauses too
/// short for the poll rule; `None` if this number is exact.
fn cuts(report: &Report) -> Option<String> {
    let outcome = &report.outcome;
    (outcome.eliminated_error > 0).then(|| {
        format!(
            "parts were cut where the traffic did not pause long enough for --poll {}: {} {} \
             eliminated, give or take {}",
            outcome.poll,
            plural(outcome.eliminated, "packet"),
            form(outcome.eliminated, "is", "are"),
            count(outcome.eliminated_error)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Outcome;

    /// A report in which every note that counts packets counts one.
    fn of_one() -> Report {
        let traffic = Traffic {
            packets: 1,
            short_packets: 1,
            super_packets: 1,
            merged_packets: 1,
            sealed_packets: 1,
            duplicate_packets: 1,
            unserved_packets: 1,
            unknown_link_packets: 1,
            untracked_packets: 1,
            flows: 1,
            steps_back: 1,
            cut_packets: 1,
            checksums: Checksums {
                mode: "verify".into(),
                wrong: 1,
                cut: 1,
                ..Checksums::default()
            },
            ..Traffic::default()
        };
        let outcome =
            Outcome { ring_overruns: 1, eliminated: 1, eliminated_error: 1, ..Outcome::default() };
        Report { traffic, outcome, ..Report::default() }
    }

    #[test]
    fn one_packet_is_singular_in_every_note() {
        let notes = of(&of_one());
        assert_eq!(notes.len(), 13, "{notes:#?}");
        for note in &notes {
            let after = note.split("1 ").skip(1).map(|rest| rest.split(' ').next().unwrap());
            let nouns: Vec<&str> = after.map(|word| word.trim_end_matches([':', ';'])).collect();
            assert!(nouns.iter().all(|noun| *noun == "of" || !noun.ends_with('s')), "{note}");
            assert!(!note.contains(['[', '|', ']', '{']), "{note}");
        }
        assert!(notes.iter().any(|note| note.starts_with("the capture truncated 1 packet: its ")));
        assert!(notes.iter().any(|note| note.starts_with("1 of 1 checksum is wrong")));
    }
}
