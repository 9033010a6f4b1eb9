//! The advice as text: the smallest settings that are enough.

use rxo_console::table::Table;

use super::decision::three_digits;
use super::units::time;
use crate::report::{Advice, Choice, LinuxAdvice, TriedPoll};

/// Formats the advice; `None` if there is no advice, because coalescing gains nothing.
pub(super) fn text(advice: &Advice) -> Option<String> {
    if !advice.gains() {
        return None;
    }
    let mut table =
        Table::new(&["setting", "enough", "of 10,000", "of best", "tried: eliminated of 10,000"]);
    for choice in &advice.choices {
        table.row(row(choice));
    }
    let together = if advice.is_exact {
        "It keeps"
    } else {
        "Together they keep, by estimate (each was tried alone),"
    };
    let mut text = polls(&advice.polls);
    text += &format!(
        "The smallest settings that reach {:.0} % of the best ({})\n\n{}\n\n{together} {:.1} % of the best.",
        100.0 * advice.wanted_share,
        advice.basis,
        table.render(),
        100.0 * advice.expected_share
    );
    if let Some(linux) = &advice.linux {
        text += &for_linux(linux);
    }
    Some(text)
}

/// Formats the comparison of poll rules as a table. Returns an empty string if `polls` is empty, as after a
/// sweep by the user.
fn polls(polls: &[TriedPoll]) -> String {
    if polls.is_empty() {
        return String::new();
    }
    let mut table =
        Table::new(&["--poll", "fewer packets", "packets each", "cores", "hold p99", ""]);
    for poll in polls {
        let remark = match poll {
            TriedPoll { is_chosen: true, .. } => "this report",
            TriedPoll { is_hypothetical: true, .. } => "no prediction: no host waits as long",
            TriedPoll { is_today: true, .. } => "your host today: the kernel's GRO, without a wait",
            _ if poll.poll.starts_with("host:") => {
                "no wait: a host busy that long with each packet"
            }
            _ => "",
        };
        table.row([
            poll.poll.clone(),
            format!("{:.1} %", 100.0 * poll.fewer_packets),
            format!("{:.2}", poll.packets_per_delivery),
            poll.cores_with.map_or("-".to_owned(), three_digits),
            time(poll.hold_p99_ns),
            remark.to_owned(),
        ]);
    }
    format!("By how long a host gathers packets before it takes them\n\n{}\n\n", table.render())
}

fn row(choice: &Choice) -> [String; 5] {
    let tried = choice.tried.iter();
    let tried: Vec<String> =
        tried.map(|tried| format!("{}: {:.0}", tried.value, tried.eliminated_per_10_000)).collect();
    [
        choice.key.clone(),
        choice.value.clone(),
        format!("{:.0}", choice.eliminated_per_10_000),
        format!("{:.1} %", 100.0 * choice.share_of_best),
        tried.join(", "),
    ]
}

fn for_linux(linux: &LinuxAdvice) -> String {
    let commands: Vec<String> = linux.commands.iter().map(|line| format!("  {line}")).collect();
    let reasons: Vec<String> = linux.derivation.iter().map(|line| format!("  {line}")).collect();
    format!(
        "\n\nOn a Linux host, for {:.1} % fewer packets\n\n{}\n\n{}",
        100.0 * linux.fewer_packets,
        commands.join("\n"),
        reasons.join("\n")
    )
}
