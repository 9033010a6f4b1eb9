//! Chooses the smallest values of settings that keep enough of the best result.

use crate::report::{Choice, Outcome, Sweep, Tried};
use crate::sweep::size_of;

/// The values of one setting, smallest first, each with its outcome, and the chosen value.
#[derive(Clone, Debug)]
pub(super) struct Candidates<'a> {
    key: &'a str,
    values: Vec<(&'a str, &'a Outcome)>,
    /// The index of the chosen value.
    chosen: usize,
}

impl<'a> Candidates<'a> {
    pub(super) fn new(
        key: &'a str,
        values: impl Iterator<Item = (&'a String, &'a Outcome)>,
    ) -> Self {
        let given: Vec<(&str, &Outcome)> =
            values.map(|(value, outcome)| (value.as_str(), outcome)).collect();
        let texts: Vec<&str> = given.iter().map(|(value, _)| *value).collect();
        let values = by_size(&texts).into_iter().map(|place| given[place]).collect();
        Self { key, values, chosen: 0 }
    }

    fn best(&self) -> f64 {
        self.values.iter().map(|(_, outcome)| gain(outcome)).fold(0.0, f64::max)
    }

    /// Returns the share of the setting's best outcome that the value at `index` keeps, from 0 to 1; 1 if even
    /// the best value eliminates no packets.
    fn share(&self, index: usize) -> f64 {
        let best = self.best();
        let gain = self.values.get(index).map_or(0.0, |(_, outcome)| gain(outcome));
        if best > 0.0 { gain / best } else { 1.0 }
    }

    /// Returns the index of the smallest value, from index `from` on, that keeps at least `share` of the best
    /// outcome; `None` if there is no such value.
    fn first_with(&self, from: usize, share: f64) -> Option<usize> {
        (from..self.values.len()).find(|index| self.share(*index) >= share)
    }

    /// Returns the outcome of the chosen value; `None` if the setting has no values.
    pub(super) fn chosen(&self) -> Option<&'a Outcome> {
        self.values.get(self.chosen).map(|(_, outcome)| *outcome)
    }

    pub(super) fn choice(&self) -> Choice {
        let value = self.values.get(self.chosen);
        Choice {
            key: self.key.to_owned(),
            value: value.map(|(value, _)| (*value).to_owned()).unwrap_or_default(),
            eliminated_per_10_000: value.map_or(0.0, |(_, outcome)| gain(outcome)),
            share_of_best: self.share(self.chosen),
            tried: self
                .values
                .iter()
                .map(|(value, outcome)| Tried {
                    value: (*value).to_owned(),
                    eliminated_per_10_000: gain(outcome),
                })
                .collect(),
        }
    }
}

const fn gain(outcome: &Outcome) -> f64 {
    outcome.eliminated_per_10_000
}

/// Returns the indices of `values` in ascending order of the values; in their original order if some of the
/// values cannot be compared.
fn by_size(values: &[&str]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..values.len()).collect();
    if values.iter().all(|value| size_of(value).is_some()) {
        places.sort_by_key(|place| size_of(values[*place]));
    }
    places
}

/// Chooses on every axis the smallest value that keeps at least the share `wanted` of the axis' best outcome.
/// Then, while the product of all axes' shares is less than `wanted`, changes the axis with the smallest share
/// to the smallest value with a better outcome. Returns the product.
pub(super) fn enough(axes: &mut [Candidates<'_>], wanted: f64) -> f64 {
    for axis in &mut *axes {
        axis.chosen = axis.first_with(0, wanted).unwrap_or_default();
    }
    loop {
        let product: f64 = axes.iter().map(|axis| axis.share(axis.chosen)).product();
        let worst = axes
            .iter_mut()
            .filter(|axis| axis.share(axis.chosen) < 1.0)
            .min_by(|a, b| a.share(a.chosen).total_cmp(&b.share(b.chosen)));
        let Some(worst) = worst.filter(|_| product < wanted) else { return product };
        let better = worst.share(worst.chosen) + f64::EPSILON;
        match worst.first_with(0, better) {
            Some(index) => worst.chosen = index,
            None => return product,
        }
    }
}

/// Chooses a combination of values from a grid: the smallest combination that keeps at least the share `wanted`
/// of the best outcome. A combination is smaller if the sum of its values' ranks is smaller. Among combinations
/// with equal sums, the one with the best outcome is chosen. Returns the chosen value on each axis, and the
/// share that the combination keeps; `None` for an empty grid.
pub(super) fn from_grid(sweep: &Sweep, wanted: f64) -> Option<(Vec<Candidates<'_>>, f64)> {
    let best = sweep.outcomes.iter().map(gain).fold(0.0, f64::max);
    let share = |place: usize| {
        let gain = sweep.outcomes.get(place).map_or(0.0, gain);
        if best > 0.0 { gain / best } else { 1.0 }
    };
    let enough = (0..sweep.outcomes.len()).filter(|place| share(*place) >= wanted);
    let chosen = enough.min_by(|a, b| {
        let ranks = ranks(sweep, *a).cmp(&ranks(sweep, *b));
        ranks.then(share(*b).total_cmp(&share(*a)))
    })?;
    let axes = (0..sweep.axes.len()).map(|axis| outcomes_along(sweep, axis, chosen)).collect();
    Some((axes, share(chosen)))
}

/// Returns the sum of the ranks of the values with which the outcome at index `place` was computed, one value
/// for each axis. The smallest value of an axis has rank 0.
fn ranks(sweep: &Sweep, place: usize) -> usize {
    let axes = sweep.axes.iter().zip(sweep.places_at(place));
    axes.map(|(axis, own)| {
        let values: Vec<&str> = axis.values.iter().map(String::as_str).collect();
        by_size(&values).iter().position(|index| *index == own).unwrap_or_default()
    })
    .sum()
}

/// Returns the values of one axis with their outcomes, while all other axes keep the values of the outcome at
/// index `place`.
fn outcomes_along(sweep: &Sweep, axis: usize, place: usize) -> Candidates<'_> {
    let own = sweep.places_at(place);
    let all = sweep.outcomes.iter().enumerate().map(|(at, outcome)| (sweep.places_at(at), outcome));
    let beside = all
        .filter(|(places, _)| (0..own.len()).all(|each| each == axis || places[each] == own[each]));
    let values = &sweep.axes[axis].values;
    let beside = beside.map(|(places, outcome)| (&values[places[axis]], outcome));
    let mut candidates = Candidates::new(&sweep.axes[axis].key, beside);
    let is_own = |(value, _): &(&str, &Outcome)| *value == values[own[axis]];
    candidates.chosen = candidates.values.iter().position(is_own).unwrap_or_default();
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::SweepAxis;

    fn outcome(gain: f64) -> Outcome {
        Outcome { eliminated_per_10_000: gain, ..Outcome::default() }
    }

    fn texts(values: &[&str]) -> Vec<String> {
        values.iter().map(|&value| value.to_owned()).collect()
    }

    #[test]
    fn the_smallest_that_is_enough_is_chosen_whatever_the_order() {
        let (values, outcomes) =
            (texts(&["64", "4", "16", "8"]), [9_000.0, 5_000.0, 8_900.0, 7_000.0].map(outcome));
        let mut axes = [Candidates::new("flows", values.iter().zip(&outcomes))];
        assert!((enough(&mut axes, 0.95) - 8_900.0 / 9_000.0).abs() < 1e-9);
        let choice = axes[0].choice();
        assert_eq!((choice.value.as_str(), choice.tried.len()), ("16", 4));
        assert_eq!(choice.tried[0].value, "4");
    }

    #[test]
    fn together_they_keep_enough() {
        let values = texts(&["1", "2", "3"]);
        let outcomes = [9_600.0, 9_900.0, 10_000.0].map(outcome);
        let axis = || Candidates::new("flows", values.iter().zip(&outcomes));
        let mut axes = [axis(), axis()];
        let product = enough(&mut axes, 0.95);
        assert!(product >= 0.95, "{product}");
        let chosen: Vec<String> = axes.iter().map(|axis| axis.choice().value).collect();
        assert!(chosen.contains(&"1".to_owned()) && chosen.contains(&"2".to_owned()), "{chosen:?}");
    }

    #[test]
    fn where_nothing_can_be_gained_the_smallest_is_enough() {
        let (values, outcomes) = (texts(&["8", "4"]), [0.0, 0.0].map(outcome));
        let mut axes = [Candidates::new("flows", values.iter().zip(&outcomes))];
        assert!((enough(&mut axes, 0.95) - 1.0).abs() < 1e-9);
        assert_eq!(axes[0].choice().value, "4");
    }

    #[test]
    fn a_grid_gives_the_smallest_combination() {
        let axes = vec![
            SweepAxis { key: "flows".into(), values: texts(&["1", "4"]) },
            SweepAxis { key: "psh".into(), values: texts(&["close", "keep"]) },
        ];
        let gains = [100.0, 960.0, 970.0, 1_000.0].map(outcome).to_vec();
        let sweep = Sweep { axes, outcomes: gains };
        let (axes, share) = from_grid(&sweep, 0.95).unwrap();
        let chosen: Vec<String> = axes.iter().map(|axis| axis.choice().value).collect();
        // Both 1/keep and 4/close have an index sum of one; the latter keeps more.
        assert_eq!((chosen, share), (texts(&["4", "close"]), 0.97));
    }
}
