//! The page section on poll rules: the results if a host gathers packets for a longer or shorter time before
//! each poll.

use super::table::{Cell, Drawing, Section, Table};
use crate::figure::{Bar, Ranking, number};
use crate::projection::Costs;
use crate::report::{Decision, Report, TriedPoll};
use crate::words::{duration, percent};

/// Returns the section with all poll rules that were tried; `None` if no poll rules were tried.
pub(super) fn section(report: &Report) -> Option<Section> {
    let advice = report.advice.as_ref();
    let polls = &advice.filter(|advice| !advice.polls.is_empty() && advice.gains())?.polls;
    Some(Section {
        id: "polls",
        title: "How long the host gathers packets",
        text: vec![
            "A capture says when packets came, not when a host took them. `host:T` is a host that is \
             busy so long with each packet and takes what came meanwhile; `time:T` one whose card \
             waits so long after the first, as with `rx-usecs`; `packets:N` waits for so many however \
             long that takes, which no host does. Shares and cores are of the packets that the decision is for."
                .to_owned(),
            costs(&report.decision),
        ],
        code: Vec::new(),
        drawings: vec![Drawing::of(&ranking(polls))],
        tables: vec![table(polls).shown("")],
    })
}

fn costs(decision: &Decision) -> String {
    let Costs { packet_ns, byte_ns, coalesce_ns, device_ns, .. } = decision.costs;
    format!(
        "Cores are those busy with receiving at the capture's mean rate, from costs of {} ns for a packet \
         that the stack handles, {} ns for a byte, {} ns for taking a packet from the device and {} ns \
         for coalescing it ({}).",
        number(packet_ns),
        number(byte_ns),
        number(device_ns),
        number(coalesce_ns),
        decision.costs_from
    )
}

fn ranking(polls: &[TriedPoll]) -> Ranking {
    let bars = polls.iter().map(|poll| Bar {
        name: format!("{}{}", poll.poll, remark(poll)),
        value: poll.fewer_packets,
        text: percent(poll.fewer_packets),
        colour: usize::from(!poll.is_chosen),
    });
    let most = polls.iter().filter(|poll| !poll.is_hypothetical).map(|poll| poll.fewer_packets);
    Ranking {
        title: "Fewer packets for the host's stack".to_owned(),
        description: format!(
            "A host would be spared {} at most.",
            percent(most.fold(0.0, f64::max))
        ),
        bars: bars.collect(),
    }
}

fn remark(poll: &TriedPoll) -> &'static str {
    match poll {
        TriedPoll { is_chosen: true, .. } => ", this report",
        TriedPoll { is_hypothetical: true, .. } => ", no prediction",
        TriedPoll { is_today: true, .. } => ", your host today",
        _ => "",
    }
}

fn table(polls: &[TriedPoll]) -> Table {
    let rows = polls.iter().map(|poll| {
        let cores = poll
            .cores_with
            .map_or_else(|| Cell::text("-"), |cores| Cell::number(number(cores), cores));
        vec![
            Cell::text(format!("{}{}", poll.poll, remark(poll))),
            Cell::number(percent(poll.fewer_packets), poll.fewer_packets),
            Cell::number(number(poll.packets_per_delivery), poll.packets_per_delivery),
            cores,
            Cell::number(duration(poll.hold_p99_ns as f64), poll.hold_p99_ns as f64),
        ]
    });
    let heads = ["--poll", "#fewer packets", "#packets per delivery", "#cores busy", "#held, 99 %"];
    Table::new(&heads, rows.collect())
}
