//! Figures 10 to 12: the processor time that coalescing saves.

use super::cost::{Cost, PAPER_GBIT_PER_S, Pace};
use super::level::Level;
use crate::claim::Claim;
use crate::figure::{Figure, Series};
use rxo_demo::stats::Spread;

/// Returns the figures of the measured costs; none without costs.
pub(super) fn figures(costs: &[Cost]) -> Vec<Figure> {
    let costs = Costs(costs);
    if costs.0.is_empty() { Vec::new() } else { vec![figure_10(costs), figure_12(costs)] }
}

#[derive(Clone, Copy)]
struct Costs<'a>(&'a [Cost]);

impl<'a> Costs<'a> {
    fn of(self, pace: Pace, payload_kb: usize, level: Level) -> Option<&'a Cost> {
        let is_it = |cost: &&Cost| {
            cost.pace == pace && cost.payload_kb == payload_kb && cost.level == level
        };
        self.0.iter().find(is_it)
    }

    fn payloads_kb(self) -> Vec<usize> {
        let mut payloads: Vec<usize> = self.0.iter().map(|cost| cost.payload_kb).collect();
        payloads.sort_unstable();
        payloads.dedup();
        payloads
    }

    fn series(self, pace: Pace, value: fn(&Cost) -> Spread) -> Vec<Series> {
        let line = |level: Level| {
            let payloads = self.payloads_kb().into_iter();
            let costs = payloads.map(|kb| self.of(pace, kb, level));
            let costs: Vec<Option<&Cost>> = costs.collect();
            let spreads = costs.iter().map(|cost| cost.map(value)).collect();
            let invalid = costs.iter().map(|cost| cost.is_some_and(|cost| !cost.is_valid));
            Series { invalid: invalid.collect(), ..Series::of_spreads(level.name(), spreads) }
        };
        let levels = Level::ALL.iter().enumerate();
        levels.map(|(colour, &level)| line(level).colour(colour)).collect()
    }

    /// Returns the condition that some points violate, with their payloads; `None` if all points are valid.
    fn condition(self, pace: Pace) -> Option<String> {
        let invalid = || self.0.iter().filter(|cost| cost.pace == pace && !cost.is_valid);
        let rates = || invalid().map(|cost| cost.gbit_per_s.median);
        let (low, high) = (rates().reduce(f64::min)?, rates().reduce(f64::max)?);
        let is_invalid = |kb: &usize| invalid().any(|cost| cost.payload_kb == *kb);
        let payloads = self.payloads_kb().into_iter().filter(is_invalid);
        let payloads: Vec<String> = payloads.map(|kb| format!("{kb} KB")).collect();
        Some(format!(
            "the paper has {PAPER_GBIT_PER_S} Gbit/s at each payload; here the sender reached {low:.2} \
             to {high:.2} with {}.",
            payloads.join(", ")
        ))
    }

    /// Returns the saving of a level for each payload with valid costs of Regular and of the level. `saved`
    /// computes the saving from the two costs.
    fn savings(self, pace: Pace, level: Level, saved: fn(&Cost, &Cost) -> f64) -> Vec<Saved> {
        let of = |kb| {
            let valid = |level| self.of(pace, kb, level).filter(|cost| cost.is_valid);
            let (regular, with) = (valid(Level::Regular)?, valid(level)?);
            Some(Saved { payload_kb: kb, amount: saved(regular, with) })
        };
        self.payloads_kb().into_iter().filter_map(of).collect()
    }
}

/// Saving of coalescing with one payload.
struct Saved {
    payload_kb: usize,
    amount: f64,
}

/// Returns the share of one core, in percent, that the paper's rate takes at this cost. A measured share
/// would not do: a machine below the rate would seem to save.
fn at_papers_rate(ns_per_byte: f64) -> f64 {
    ns_per_byte * PAPER_GBIT_PER_S / 8.0 * 100.0
}

fn utilisation(cost: &Cost) -> Spread {
    let Spread { median, min, max } = cost.ns_per_byte;
    let of = at_papers_rate;
    Spread { median: of(median), min: of(min), max: of(max) }
}

/// Returns the saving in percentage points of one core's utilisation.
fn points(regular: &Cost, with: &Cost) -> f64 {
    utilisation(regular).median - utilisation(with).median
}

/// Returns the saving in percent of the processor time per byte.
fn percent(regular: &Cost, with: &Cost) -> f64 {
    (1.0 - with.ns_per_byte.median / regular.ns_per_byte.median) * 100.0
}

fn figure_10(costs: Costs<'_>) -> Figure {
    let mut series = costs.series(Pace::OneGbit, utilisation);
    series.extend(windows_at_8_kb(costs));
    let saved = |id, level| saving(id, &costs.savings(Pace::OneGbit, level, points));
    let claims = [saved("rsc.fig10.rsc2", Level::Rsc2), saved("rsc.fig10.rsc5", Level::Rsc5)];
    Figure {
        number: "10",
        x: names(costs),
        series,
        condition: costs.condition(Pace::OneGbit),
        claims: claims.into_iter().flatten().collect(),
        ..Figure::default()
    }
}

/// Returns the only values of figures 10 to 12 that the paper's text states: Windows, 8 KB (figure 11).
fn windows_at_8_kb(costs: Costs<'_>) -> Vec<Series> {
    let line = |name: &str, value: f64| {
        let payloads = costs.payloads_kb().into_iter();
        Series::reference(name, payloads.map(|kb| (kb == 8).then_some(value)).collect())
    };
    vec![
        line("paper, Windows: Regular", 39.5).colour(Level::Regular as usize),
        line("paper: RSC_2", 37.8).colour(Level::Rsc2 as usize),
        line("paper: RSC_5", 32.6).colour(Level::Rsc5 as usize),
    ]
}

fn figure_12(costs: Costs<'_>) -> Figure {
    let saved = |id, level| saving(id, &costs.savings(Pace::Unlimited, level, percent));
    let claims = [
        saved("rsc.fig12.rsc2", Level::Rsc2),
        saved("rsc.fig12.rsc3", Level::Rsc3),
        saved("rsc.fig12.rsc5", Level::Rsc5),
    ];
    Figure {
        number: "12",
        x: names(costs),
        series: costs.series(Pace::Unlimited, |cost| cost.ns_per_byte),
        condition: costs.condition(Pace::Unlimited),
        claims: claims.into_iter().flatten().collect(),
        ..Figure::default()
    }
}

fn names(costs: Costs<'_>) -> Vec<String> {
    costs.payloads_kb().iter().map(|kb| format!("{kb} KB")).collect()
}

/// Makes the claim that every payload saves at least the paper's minimum; the value is that of the payload
/// that saves least.
fn saving(id: &str, saved: &[Saved]) -> Option<Claim> {
    let amounts = || saved.iter().map(|saved| saved.amount);
    let (low, high) = (amounts().reduce(f64::min)?, amounts().reduce(f64::max)?);
    let each =
        saved.iter().map(|saved| format!("{:.1} with {} KB", saved.amount, saved.payload_kb));
    let detail = format!("{low:.1} to {high:.1}.");
    Some(Claim::new(id, Some(low), detail).because(|| {
        format!(
            "By payload: {}. Coalescing's own cost is in ours, and was taken out of the paper's.",
            each.collect::<Vec<_>>().join(", ")
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(pace: Pace, level: Level, percent: f64) -> Cost {
        let spread = |value| Spread { median: value, min: value, max: value };
        Cost {
            pace,
            payload_kb: 8,
            level,
            ns_per_byte: spread(percent / 11.875),
            ns_per_packet: spread(1_000.0),
            core_percent: spread(percent),
            gbit_per_s: spread(1.0),
            packets_per_delivery: spread(2.0),
            packet_bytes: 1_514.0,
            rounds: 1,
            is_valid: true,
        }
    }

    #[test]
    fn savings_are_points_at_one_pace_and_shares_at_the_other() {
        let levels = [(Level::Regular, 40.0), (Level::Rsc2, 37.0), (Level::Rsc5, 36.0)];
        let costs = Pace::ALL.map(|pace| levels.map(|(level, cpu)| cost(pace, level, cpu)));
        let figures = figures(costs.as_flattened());
        // 3 and 4 points, where the paper has at least 2 and 5.
        assert_eq!(figures[0].verdicts(), [Some(true), Some(false)]);
        assert!(figures[0].claims[1].line().contains("4.0 with 8 KB"), "{:?}", figures[0].claims);
        // RSC_3 was not measured, so there is no claim about it.
        assert_eq!(figures[1].verdicts(), [Some(true); 2]);
        assert!(figures[1].claims[0].line().contains("7.5 to 7.5."), "{:?}", figures[1].claims);
    }

    #[test]
    fn points_without_the_papers_rate_are_in_no_verdict() {
        let at = |payload_kb, level, cpu, is_valid| {
            let gbit_per_s = if is_valid { 0.94 } else { 0.4 };
            let gbit_per_s = Spread { median: gbit_per_s, min: gbit_per_s, max: gbit_per_s };
            Cost { payload_kb, is_valid, gbit_per_s, ..cost(Pace::OneGbit, level, cpu) }
        };
        let costs = [
            at(2, Level::Regular, 90.0, true),
            at(2, Level::Rsc2, 190.0, false),
            at(8, Level::Regular, 22.0, true),
            at(8, Level::Rsc2, 19.0, true),
        ];
        let figure = &figures(&costs)[0];
        // 2 KB is invalid and left out; there RSC_2 would cost 100 points.
        assert_eq!(figure.verdicts(), [Some(true)], "{:?}", figure.claims);
        assert_eq!(figure.series[1].invalid, [true, false]);
        assert_eq!(figure.series[0].invalid, [false, false]);
        let condition = figure.condition.as_deref().unwrap();
        assert!(condition.ends_with("the sender reached 0.40 to 0.40 with 2 KB."), "{condition}");
        let valid = &costs[2..];
        assert!(figures(valid)[0].condition.is_none());
        // Without valid costs there is no claim.
        assert!(figures(&costs[1..2])[0].claims.is_empty());
    }

    #[test]
    fn of_no_costs_there_are_no_figures() {
        assert!(figures(&[]).is_empty());
    }
}
