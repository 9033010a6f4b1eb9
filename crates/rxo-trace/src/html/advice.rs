//! The page section on advice: the settings that are enough, and the settings of a Linux host.

use super::table::{Cell, Drawing, Part, Section, Table};
use crate::figure::{Axis, Figure, Guide, Series, number};
use crate::report::{Advice, Choice, LinuxAdvice};
use crate::words::{duration, percent};

/// Returns the section on advice; `None` if no other settings were tried, or if no setting eliminates packets.
pub(super) fn section(advice: Option<&Advice>) -> Option<Section> {
    let advice = advice.filter(|advice| advice.gains())?;
    let mut text = vec![sentence(advice)];
    let mut tables = vec![choices(advice)];
    let mut code = Vec::new();
    if let Some(linux) = &advice.linux {
        text.push(format!(
            "For a Linux host with `IF` as its interface, where they spare the stack {} of its \
             packets:",
            percent(linux.fewer_packets)
        ));
        code.clone_from(&linux.commands);
        tables.push(derived(linux));
    }
    Some(Section {
        id: "advice",
        title: "Settings that are enough",
        text,
        code,
        drawings: advice.choices.iter().filter(has_course).map(|c| drawing(advice, c)).collect(),
        tables,
    })
}

fn sentence(advice: &Advice) -> String {
    let pairs = advice.choices.iter().map(|choice| format!("{}={}", choice.key, choice.value));
    let kept = percent(advice.expected_share);
    let how = if advice.is_exact { "They keep" } else { "Together they keep about" };
    format!(
        "The smallest settings that keep {} of the best: {}. {how} {kept} of it. Tried with {}.",
        percent(advice.wanted_share),
        pairs.collect::<Vec<_>>().join(", "),
        advice.basis
    )
}

/// Returns `true` if a figure of the choice is useful. A single tried value gives no curve.
fn has_course(choice: &&Choice) -> bool {
    choice.tried.len() > 1
}

fn drawing(advice: &Advice, choice: &Choice) -> Drawing {
    let names = choice.tried.iter().map(|tried| tried.value.as_str());
    let values = choice.tried.iter().map(|tried| tried.eliminated_per_10_000);
    let most = values.clone().fold(0.0, f64::max);
    let enough = most * advice.wanted_share;
    let figure = Figure::new(
        format!("Packets eliminated over {}", choice.key),
        Axis::categories(&choice.key, names),
        Axis::linear("of 10,000 packets"),
    )
    .with(Series::over_categories("eliminated", values))
    .guide(Guide::Y(enough, format!("{} of the best", percent(advice.wanted_share))))
    .describe(format!(
        "{} is enough: {} of 10,000 packets are eliminated with it, {} at most.",
        choice.value,
        number(choice.eliminated_per_10_000),
        number(most)
    ));
    Drawing::of(&figure)
}

fn choices(advice: &Advice) -> Part {
    let rows = advice.choices.iter().map(|choice| {
        let tried = choice
            .tried
            .iter()
            .map(|tried| format!("{}: {}", tried.value, number(tried.eliminated_per_10_000)));
        vec![
            Cell::text(&choice.key),
            Cell::text(&choice.value),
            Cell::number(number(choice.eliminated_per_10_000), choice.eliminated_per_10_000),
            Cell::number(percent(choice.share_of_best), choice.share_of_best),
            Cell::text(tried.collect::<Vec<_>>().join("; ")),
        ]
    });
    let heads = ["setting", "enough", "#eliminated of 10,000", "#of the best", "tried, eliminated"];
    Table::new(&heads, rows.collect()).behind("Every value tried as a table")
}

fn derived(linux: &LinuxAdvice) -> Part {
    let flush_ns = linux.gro_flush_timeout_ns;
    let values = [
        ("ethtool rx-usecs", format!("{} µs", linux.rx_usecs)),
        ("ethtool rx-frames", linux.rx_frames.to_string()),
        ("gro_flush_timeout", format!("{flush_ns} ns ({})", duration(flush_ns as f64))),
        ("napi_defer_hard_irqs", linux.napi_defer_hard_irqs.to_string()),
    ];
    let values = values.into_iter().map(|(name, value)| vec![Cell::text(name), Cell::text(value)]);
    let why = linux.derivation.iter().map(|why| vec![Cell::text("because"), Cell::text(why)]);
    Table::new(&["Linux setting", "value"], values.chain(why).collect())
        .behind("Where these come from")
}
