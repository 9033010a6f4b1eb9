//! Which settings are enough.

use rxo_trace::report::{Advice, Choice, LinuxAdvice};

use crate::table::Table;

/// `None` when there is nothing to gain, and so nothing to advise.
pub(super) fn text(advice: &Advice) -> Option<String> {
    if advice.choices.iter().all(|choice| choice.eliminated_per_10_000 <= 0.0) {
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
    let mut text = format!(
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
    format!("\n\nOn a Linux host\n\n{}\n\n{}", commands.join("\n"), reasons.join("\n"))
}
