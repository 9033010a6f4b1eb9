//! Notes of a report: what the user should know and do, one sentence each.

use crate::report::{Checksums, Report, Traffic};
use crate::words::count;

/// Fewer unfinished checksums may be chance, because one in 32,768 wrong ones looks unfinished.
const MANY: u64 = 3;

/// The notes for a report that is otherwise complete.
pub(super) fn of(report: &Report) -> Vec<String> {
    let traffic = &report.traffic;
    [
        offload(&traffic.checksums),
        wrong(&traffic.checksums),
        cut(traffic),
        short(traffic),
        super_packets(traffic),
        untracked(traffic),
        unserved(traffic),
        unknown_link(traffic),
        steps_back(traffic),
        waiting(report),
        overruns(report),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn offload(checksums: &Checksums) -> Option<String> {
    let Checksums { unfinished, sender_offload, mode, .. } = checksums;
    let first = sender_offload.first().filter(|_| *unfinished >= MANY)?;
    let who = match sender_offload.len() {
        1 => format!("all from {}", first.address),
        2 => format!("from {} and {}", first.address, sender_offload.get(1)?.address),
        hosts => format!("from {hosts} hosts, most from {}", first.address),
    };
    let done = match mode.as_str() {
        "partial" => "they were taken as what they are (--checksum partial)",
        _ => {
            "nothing was coalesced that has one; --checksum partial takes them as what they are, \
             --checksum trust looks at none"
        }
    };
    Some(format!(
        "{} TCP checksums were left for the sender's card to fill in ({who}): the capture \
         was taken on the sending machine; {done}",
        count(*unfinished)
    ))
}

fn wrong(checksums: &Checksums) -> Option<String> {
    let Checksums { wrong, right, .. } = *checksums;
    (wrong > 0).then(|| {
        format!(
            "{} of {} TCP checksums are wrong; nothing with a wrong one was coalesced",
            count(wrong),
            count(wrong + right)
        )
    })
}

fn cut(traffic: &Traffic) -> Option<String> {
    let Traffic { cut_packets, checksums, .. } = traffic;
    let done = match checksums.mode.as_str() {
        "trust" => "they were coalesced unseen (--checksum trust)",
        _ => {
            "their checksums cannot be verified, so they were not coalesced; --checksum trust does, or \
             capture whole packets (tcpdump -s 0)"
        }
    };
    (checksums.cut > 0).then(|| {
        format!("of {} packets the capture holds only the beginning: {done}", count(*cut_packets))
    })
}

fn short(traffic: &Traffic) -> Option<String> {
    let packets = traffic.short_packets;
    (packets > 0).then(|| {
        format!(
            "{} packets end before their IP header says, though the capture calls them \
             whole: they count as what their headers say, and as cut",
            count(packets)
        )
    })
}

fn super_packets(traffic: &Traffic) -> Option<String> {
    let Traffic { super_packets, .. } = traffic;
    (*super_packets > 0).then(|| {
        format!(
            "{} TCP segments are larger than any link's: they were captured before \
             the sender's card cut them or after the receiver put them together; for what is on \
             the wire capture with `ethtool -K IF gro off lro off tso off gso off`",
            count(*super_packets)
        )
    })
}

fn untracked(traffic: &Traffic) -> Option<String> {
    let Traffic { untracked_packets, flows, .. } = traffic;
    (*untracked_packets > 0).then(|| {
        format!(
            "there are more than {} flows; the {} packets of those that came later are in all \
             totals, but in no flow's figures; --flow looks at fewer",
            count(*flows),
            count(*untracked_packets)
        )
    })
}

fn unserved(traffic: &Traffic) -> Option<String> {
    let packets = traffic.unserved_packets;
    (packets > 0).then(|| {
        format!(
            "{} packets came on interfaces beyond those there is memory for, and passed as \
             they are; --no-advice or fewer sweep values leave room for more",
            count(packets)
        )
    })
}

fn unknown_link(traffic: &Traffic) -> Option<String> {
    let packets = traffic.unknown_link_packets;
    (packets > 0).then(|| {
        format!(
            "{} packets are of a link type that is not known (known are Ethernet, Linux \
             cooked, raw IP and loopback), and passed as they are",
            count(packets)
        )
    })
}

fn steps_back(traffic: &Traffic) -> Option<String> {
    let times = traffic.steps_back;
    (times > 0).then(|| {
        format!(
            "the capture's time went back {} times; it was taken to stand still there",
            count(times)
        )
    })
}

/// The note on polls of a number of packets, which wait for them however long that takes.
fn waiting(report: &Report) -> Option<String> {
    const LONG_NS: u64 = 1_000_000;
    let outcome = &report.outcome;
    let counts_packets = outcome.poll.starts_with("packets:");
    (counts_packets && outcome.hold_ns.p99 > LONG_NS).then(|| {
        format!(
            "--poll {} waits for that many packets, longer here than a host would: what it \
             eliminates is a most, and hold times are no prediction; --poll host:1us or time:50us \
             follow the capture's clock",
            outcome.poll
        )
    })
}

fn overruns(report: &Report) -> Option<String> {
    let overruns = report.outcome.ring_overruns;
    (overruns > 0).then(|| {
        format!(
            "{} polls came early because 4,096 packets waited; a real receive ring would \
             have lost some under --poll {}",
            count(overruns),
            report.outcome.poll
        )
    })
}
