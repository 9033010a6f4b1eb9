//! Figures 7 to 9, 11 and 12, and Table 1, in instructions.

use rxo_console::numbers::ratio;
use rxo_demo::stats::Spread;

use super::case::{Application, Case};
use super::category::Category;
use super::row::{Gain, Row, Rows};
use crate::card::Expansion;
use crate::claim::{Claim, Ours};
use crate::figure::{Bracket, Figure, Guide, Series};
use crate::menon::receive::fit::Fit;
use crate::menon::receive::paper::{REQUESTS, SYSTEMS};
use crate::menon::receive::stack::Stack;

/// Returns every figure that was measured.
pub(super) fn all(rows: Rows<'_>) -> Vec<Figure> {
    let figures = [
        figure_7(rows),
        figure_8(rows),
        figure_9(rows),
        figure_11(rows),
        figure_12(rows),
        table_1(rows),
    ];
    figures.into_iter().flatten().collect()
}

/// Draws the gains of the optimizations, per second and per instruction.
fn figure_7(rows: Rows<'_>) -> Option<Figure> {
    let [one, two, _] = SYSTEMS;
    let [one_processor, two_processors] =
        [Case::one_processor, Case::two_processors].map(|place| place(Stack::OPTIMIZED));
    let places = [
        (
            Case::one_processor(Stack::AGGREGATION),
            Some(("menon-card.fig7.ra.up", one.aggregation_gain)),
        ),
        (one_processor, Some(("menon-card.fig7.both.up", one.gain))),
        (one_processor.expanded_by_card(), None),
        (
            Case::two_processors(Stack::AGGREGATION),
            Some(("menon-card.fig7.ra.smp", two.aggregation_gain)),
        ),
        (two_processors, Some(("menon-card.fig7.both.smp", two.gain))),
        (two_processors.expanded_by_card(), None),
    ];
    let gained = places.map(|(case, paper)| Gained::of(rows, case, paper));
    let gained: Vec<Gained> = gained.into_iter().flatten().collect();
    if gained.is_empty() {
        return None;
    }
    let series = |name: &str, colour, of: &dyn Fn(&Gained) -> Option<f64>| {
        Series::new(name, gained.iter().map(of).collect()).bars().colour(colour)
    };
    let paper = gained.iter().map(|it| Some(1.0 + it.paper?.1 / 100.0)).collect();
    Some(Figure {
        number: "7 on a card",
        x: gained.iter().map(Gained::name).collect(),
        series: vec![
            Series::reference("paper, for a second", paper).bars().colour(1),
            series("for a second, saturated", 1, &|it| Some(it.saturated?.time)),
            series("for a second, from Linux senders", 0, &|it| Some(it.linux?.time)),
            series("for an instruction", 2, &|it| Some(it.any().instructions)),
        ],
        guides: vec![Guide { value: 1.0, meaning: "Original" }],
        claims: gained.iter().filter_map(Gained::claim).collect(),
        ..Figure::default()
    })
}

/// The gain of a case over Original, from the saturating generator (like the paper's senders) and from Linux
/// senders.
struct Gained {
    case: Case,
    /// The claim's id and the paper's gain in percent; `None` if the paper has no such case.
    paper: Option<(&'static str, f64)>,
    saturated: Option<Gain>,
    linux: Option<Gain>,
}

impl Gained {
    /// Makes the gains of `case`; `None` if neither traffic was measured.
    fn of(rows: Rows<'_>, case: Case, paper: Option<(&'static str, f64)>) -> Option<Self> {
        let [saturated, linux] = [case.saturated(), case].map(|case| rows.gain(case));
        saturated.or(linux)?;
        Some(Self { case, paper, saturated, linux })
    }

    fn name(&self) -> String {
        let what = if self.case.stack == Stack::OPTIMIZED { "both" } else { "aggregation" };
        let place = match self.case.application {
            Application::Worker => "one",
            Application::Threads => "two",
        };
        let expansion = if self.case.expansion == Expansion::Card { ", by card" } else { "" };
        format!("{what}{expansion}, {place}")
    }

    fn any(&self) -> Gain {
        self.saturated.or(self.linux).unwrap_or(Gain { instructions: 0.0, time: 0.0 })
    }

    /// Makes the paper's claim about the saturated receiver, or about Linux senders if that was not measured.
    fn claim(&self) -> Option<Claim> {
        let (id, _) = self.paper?;
        let percent = |times: f64| 100.0 * (times - 1.0);
        let senders = if self.saturated.is_some() { "Saturated" } else { "From Linux senders" };
        let detail =
            format!("{senders}; {:+.0} % for an instruction.", percent(self.any().instructions));
        Some(Claim::new(id, Some(percent(self.any().time)), detail))
    }
}

/// Draws the instructions by category, with the application on the worker's thread.
fn figure_8(rows: Rows<'_>) -> Option<Figure> {
    let cases = [
        ("Original, polls of one", Case::SINGLE),
        (ORIGINAL, Case::one_processor(Stack::ORIGINAL)),
        ("+ Receive Aggregation", Case::one_processor(Stack::AGGREGATION)),
        (BOTH, Case::one_processor(Stack::OPTIMIZED)),
        (BY_CARD, Case::one_processor(Stack::OPTIMIZED).expanded_by_card()),
    ];
    Some(Figure { number: "8 on a card", ..profile(rows, &cases, "menon-card.fig8.per-packet")? })
}

/// Draws the instructions by category, with the application on its own thread.
fn figure_9(rows: Rows<'_>) -> Option<Figure> {
    let cases = [
        (ORIGINAL, Case::two_processors(Stack::ORIGINAL)),
        ("+ Receive Aggregation", Case::two_processors(Stack::AGGREGATION)),
        (BOTH, Case::two_processors(Stack::OPTIMIZED)),
        (BY_CARD, Case::two_processors(Stack::OPTIMIZED).expanded_by_card()),
    ];
    Some(Figure { number: "9 on a card", ..profile(rows, &cases, "menon-card.fig9.per-packet")? })
}

/// Draws a stack of categories for each host, the per-packet categories at the bottom. The claim `id` is
/// about the factor by which these fall from Original to both optimizations. `None` unless both were measured.
fn profile(rows: Rows<'_>, cases: &[(&'static str, Case)], id: &str) -> Option<Figure> {
    let measured: Vec<_> =
        cases.iter().filter_map(|&(name, case)| Some((name, rows.of(case)?))).collect();
    let named = |wanted| measured.iter().find(|(name, _)| *name == wanted).map(|(_, row)| *row);
    let (original, optimized) = (named(ORIGINAL)?, named(BOTH)?);
    let part = |category: Category| {
        let of = |(_, row): &(&str, &Row)| Some(row.breakdown[category as usize]);
        Series::new(category.name(), measured.iter().map(of).collect()).stack()
    };
    let brackets = measured.iter().enumerate().map(|(place, (_, row))| Bracket {
        place,
        to: per_packet(row),
        name: "per packet",
    });
    let [before, after] = [original, optimized].map(per_packet);
    let detail = format!(
        "From {before:.0} to {after:.0} instructions a packet. Expanding templates, which is the \
         driver's as in the paper, takes {:.0} instructions an ACK.",
        optimized.expansion_per_ack()
    );
    Some(Figure {
        x: measured.iter().map(|(name, _)| (*name).to_owned()).collect(),
        series: Category::ALL.into_iter().map(part).collect(),
        brackets: brackets.collect(),
        claims: vec![Claim::new(id, Some(ratio(before, after)), detail)],
        ..Figure::default()
    })
}

fn per_packet(row: &Row) -> f64 {
    Category::PER_PACKET.iter().map(|&category| row.breakdown[category as usize]).sum()
}

/// Draws the cost per packet over the Aggregation Limit; `None` for fewer than three limits.
fn figure_11(rows: Rows<'_>) -> Option<Figure> {
    let limits = rows.limits();
    if limits.len() < 3 {
        return None;
    }
    let points: Vec<_> =
        limits.iter().map(|(limit, row)| (*limit, row.per_packet.median)).collect();
    let fit = Fit::of(&points)?;
    let original = rows.of(Case::one_processor(Stack::ORIGINAL));
    let detail = format!("x = {:.0} and y = {:.0} instructions a packet.", fit.x, fit.y);
    Some(Figure {
        number: "11 on a card",
        x: limits.iter().map(|(limit, _)| limit.to_string()).collect(),
        series: vec![
            Series::of_spreads(
                "here",
                limits.iter().map(|(_, row)| Some(row.per_packet)).collect(),
            ),
            Series::reference(
                "x + y/k, fitted",
                points.iter().map(|(limit, _)| Some(fit.at(*limit))).collect(),
            ),
        ],
        guides: original
            .map(|row| Guide { value: row.per_packet.median, meaning: "Original" })
            .into_iter()
            .collect(),
        claims: vec![Claim::new("menon-card.fig11.formula", Some(fit.r_squared), detail)],
        ..Figure::default()
    })
}

/// Draws the cost per packet over the number of connections; `None` for fewer than two.
fn figure_12(rows: Rows<'_>) -> Option<Figure> {
    let connections = rows.connections();
    if connections.len() < 2 {
        return None;
    }
    let line = |stack: Stack| {
        let of = |&connections: &usize| {
            Some(rows.of(Case { connections, ..Case::one_processor(stack) })?.per_packet)
        };
        Series::of_spreads(stack.name(), connections.iter().map(of).collect())
    };
    Some(Figure {
        number: "12 on a card",
        x: connections.iter().map(usize::to_string).collect(),
        series: [Stack::ORIGINAL, Stack::OPTIMIZED].into_iter().map(line).collect(),
        claims: vec![at_many(rows)],
        ..Figure::default()
    })
}

fn at_many(rows: Rows<'_>) -> Claim {
    let case = Case { connections: MANY, ..Case::one_processor(Stack::OPTIMIZED) };
    let both = rows.of(case.original()).zip(rows.of(case));
    let gain = both.map(|(original, optimized)| {
        100.0 * (ratio(original.per_packet.median, optimized.per_packet.median) - 1.0)
    });
    let claim = Claim::new("menon-card.fig12.at-400", gain, None);
    let sent_again = both.map(|(one, other)| [one, other].map(|row| row.sent_again_percent.max));
    match sent_again {
        Some([one, other]) if one.max(other) > MOST_SENT_AGAIN_PERCENT => claim.undecided(format!(
            "In the counted transfers {one:.1} % of the segments were sent again in Original and {other:.1} % with both, \
             which cost instructions too; above {MOST_SENT_AGAIN_PERCENT} % a gain may be fewer losses."
        )),
        _ => claim,
    }
}

/// Draws the exchange of single bytes, in percent of Original.
fn table_1(rows: Rows<'_>) -> Option<Figure> {
    let [before, after] =
        [Stack::ORIGINAL, Stack::OPTIMIZED].map(|stack| rows.of(Case::requests(stack)));
    let (before, after) = (before?.per_byte, after?.per_byte);
    let instructions = 100.0 * ratio(before.median, after.median);
    let paper = REQUESTS.iter().map(|(_, [before, after])| Some(100.0 * after / before));
    let names = REQUESTS.iter().map(|(name, _)| *name);
    Some(Figure {
        number: "Table 1 on a card",
        x: names.chain(["here: for an instruction"]).map(str::to_owned).collect(),
        series: vec![
            Series::reference("paper: for a second", paper.chain([None]).collect())
                .bars()
                .colour(0),
            Series::new("here", [None, None, None, Some(instructions)].to_vec()).bars().colour(0),
        ],
        guides: vec![Guide { value: 100.0, meaning: "Original" }],
        claims: vec![impact(before, after)],
        ..Figure::default()
    })
}

/// Makes the claim about the cost of an exchange. Its interval is from the rounds' least to their most.
fn impact(before: Spread, after: Spread) -> Claim {
    let more = |after, before| 100.0 * (ratio(after, before) - 1.0);
    let interval = (more(after.min, before.max), more(after.max, before.min));
    let ours = Ours::between(more(after.median, before.median), interval, 1);
    let detail = format!(
        "{:.0} instructions an exchange without, {:.0} with both.",
        before.median, after.median
    );
    Claim::new("menon-card.table1.requests", Some(ours), detail).because(|| {
        format!(
            "At one a nanosecond the difference is {:.1} us; an exchange of the paper's takes 127 us.",
            (after.median - before.median) / 1e3
        )
    })
}

const ORIGINAL: &str = "Original";
/// Label of the row with both optimizations.
const BOTH: &str = "+ ACK Offload";
/// Label of the row with both optimizations and expansion by the card, at no cost to the receiver.
const BY_CARD: &str = "+ ACK Offload, by card";
const MANY: usize = 400;
/// Largest share of retransmissions, in percent. Above it the cost of losses distorts the cost of a packet.
const MOST_SENT_AGAIN_PERCENT: f64 = 1.0;

#[cfg(test)]
mod tests {
    use super::super::network::Sample;
    use super::super::row::tests::{row, sample};
    use super::*;

    #[test]
    fn a_run_that_ended_before_both_optimizations_has_no_profile() {
        for place in [Case::one_processor, Case::two_processors] {
            let rows: Vec<_> =
                Stack::ALL.into_iter().map(|stack| row(place(stack), 1_000.0, 500.0)).collect();
            let profiles = |rows: &[Row]| {
                [figure_8(Rows(rows)), figure_9(Rows(rows))].into_iter().flatten().count()
            };
            assert_eq!((profiles(&rows), profiles(&rows[..2])), (1, 0));
        }
    }

    #[test]
    fn what_is_gained_is_held_against_the_saturated_receiver() {
        let rows = |case: &dyn Fn(Stack) -> Case, [original, optimized]: [f64; 2]| {
            let original = row(case(Stack::ORIGINAL), 1_000.0, original);
            [original, row(case(Stack::OPTIMIZED), 400.0, optimized)]
        };
        let linux = rows(&Case::one_processor, [500.0, 400.0]);
        let said = |rows: &[Row]| figure_7(Rows(rows)).unwrap().claims[0].clone();
        assert_eq!(said(&linux).holds(), Some(false), "{:?}", said(&linux));
        let both = [linux, rows(&|stack| Case::one_processor(stack).saturated(), [500.0, 300.0])];
        let said = said(&both.concat());
        assert!(
            said.holds() == Some(true)
                && said.line().contains("66.67 %,")
                && said.line().contains(" Saturated;")
        );
    }

    #[test]
    fn what_the_card_expands_is_shown_and_not_judged() {
        let case = Case::one_processor(Stack::OPTIMIZED);
        let rows = [
            row(case.original(), 1_000.0, 500.0),
            row(case, 400.0, 400.0),
            row(case.expanded_by_card(), 100.0, 100.0),
        ];
        let figure = figure_7(Rows(&rows)).unwrap();
        assert_eq!(figure.x, ["both, one", "both, by card, one"]);
        assert_eq!(figure.series[0].values, [Some(1.45), None], "the paper's driver expands");
        let [said] = &figure.claims[..] else { panic!("{:?}", figure.claims) };
        assert!(said.holds() == Some(false) && said.line().contains(" 25 %,"), "{said:?}");
        let profile = figure_8(Rows(&rows)).unwrap();
        assert!(profile.claims[0].line().contains(" 2.5 times,"), "{profile:?}");
    }

    /// Makes the claim about 400 connections, with `sent_again` of 2,000 segments retransmitted.
    fn at_400(instructions: f64, sent_again: u64) -> Claim {
        let row = |(stack, instructions)| {
            let case = Case { connections: MANY, ..Case::one_processor(stack) };
            let counted_retransmissions = sent_again;
            Row::of(case, &[Sample { counted_retransmissions, ..sample(instructions, 500.0) }])
        };
        let stacks = [(Stack::ORIGINAL, 1_000.0), (Stack::OPTIMIZED, instructions)];
        at_many(Rows(&stacks.into_iter().filter_map(row).collect::<Vec<_>>()))
    }

    #[test]
    fn a_gain_at_400_connections_counts_only_if_hardly_anything_is_sent_again() {
        assert_eq!(
            [at_400(700.0, 20), at_400(720.0, 20)].map(|said| said.holds()),
            [Some(true), Some(false)]
        );
        let lossy = at_400(700.0, 21).line();
        assert!(lossy.starts_with("no verdict "), "{lossy}");
        assert!(lossy.contains("42.86 %") && lossy.contains("fewer"), "{lossy}");
        assert!(at_many(Rows(&[])).line().starts_with("not repeated "));
    }

    #[test]
    fn rounds_on_both_sides_of_the_limit_decide_nothing() {
        let of =
            |after: [f64; 3]| impact(Spread::of([1_000.0]).unwrap(), Spread::of(after).unwrap());
        assert_eq!(of([1_010.0, 1_014.0, 1_019.0]).holds(), Some(true));
        assert_eq!(of([1_030.0, 1_040.0, 1_050.0]).holds(), Some(false));
        let mixed = of([1_010.0, 1_014.0, 1_024.0]).line();
        assert!(mixed.starts_with("no verdict ") && mixed.contains("(1 to 2.4)"), "{mixed}");
    }
}
