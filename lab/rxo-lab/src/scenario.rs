//! Experiments as data: cases, a measurement of each, and charts over the cases.
//!
//! A case combines a topology, traffic, a path and a policy. A [`Scenario`] measures each case in turn, round
//! after round, and draws a line for each name of a case over the values of x. It is an experiment by itself,
//! so that a new one consists of its cases, its measurement and a table of [`Chart`]s.

use anyhow::Result;
use rxo_demo::stats::Spread;
use rxo_demo::turns::{Cases, Turns};
use serde::Serialize;

use crate::claim::{Basis, Claim, Fact};
use crate::figure::{Figure, Series, Shape};
use crate::runner::{Experiment, Outcome};

/// An experiment as data. `C` is a case, `S` the result of one measurement.
pub(crate) struct Scenario<C: 'static, S: 'static> {
    pub(crate) basis: Basis,
    pub(crate) cases: Vec<C>,
    /// Number of rounds; each case is measured once in a round. Counts need one.
    pub(crate) rounds: usize,
    /// Number of neighbouring cases that take turns at being first.
    pub(crate) rotated: usize,
    pub(crate) name: fn(C) -> String,
    pub(crate) measure: Box<dyn Fn(C) -> Result<S>>,
    /// Returns a progress line about a result.
    pub(crate) line: fn(&S) -> String,
    pub(crate) charts: &'static [Chart<C, S>],
    /// Returns the claims of the chart with this number.
    pub(crate) claims: fn(&'static str, &Cells<C, S>) -> Vec<Claim>,
    /// Returns `true` if every byte arrived as it was sent.
    pub(crate) is_intact: fn(&S) -> bool,
    /// The facts in the experiment's notes.
    pub(crate) facts: Vec<Fact>,
}

/// A figure over the cases: a line for each name, over the values of x.
pub(crate) struct Chart<C: 'static, S: 'static> {
    pub(crate) number: &'static str,
    pub(crate) x: fn(C) -> String,
    pub(crate) line: fn(C) -> &'static str,
    pub(crate) value: fn(&S) -> f64,
    /// Returns the paper's value for a case; `None` if it has none.
    pub(crate) paper: fn(C) -> Option<f64>,
    pub(crate) shape: Shape,
}

/// The samples of each case.
#[derive(Serialize)]
pub(crate) struct Cells<C, S>(Vec<(C, Vec<S>)>);

impl<C, S> Cells<C, S> {
    pub(crate) const fn of(cells: Vec<(C, Vec<S>)>) -> Self {
        Self(cells)
    }

    /// Returns each case with its samples.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(C, Vec<S>)> {
        self.0.iter()
    }
}

impl<C: Copy + PartialEq, S> Cells<C, S> {
    /// Returns the median and the range of one value of `case`; `None` if it was not measured.
    pub(crate) fn spread(&self, case: C, value: impl Fn(&S) -> f64) -> Option<Spread> {
        let (_, samples) = self.0.iter().find(|(measured, _)| *measured == case)?;
        Spread::over(samples, value)
    }

    pub(crate) fn median(&self, case: C, value: impl Fn(&S) -> f64) -> Option<f64> {
        Some(self.spread(case, value)?.median)
    }

    /// Returns every sample of a value; none without a case.
    fn values(&self, case: Option<C>, value: impl Fn(&S) -> f64) -> Vec<f64> {
        let of_case = self.0.iter().filter(|(measured, _)| Some(*measured) == case);
        of_case.flat_map(|(_, samples)| samples).map(value).collect()
    }

    pub(crate) fn cases(&self) -> impl Iterator<Item = C> {
        self.0.iter().map(|(case, _)| *case)
    }

    /// Returns every sample of every case.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (C, &S)> {
        self.0.iter().flat_map(|(case, samples)| samples.iter().map(move |sample| (*case, sample)))
    }

    /// Returns the cells of some cases.
    pub(crate) fn only(&self, is_wanted: impl Fn(C) -> bool) -> Self
    where
        S: Clone,
    {
        let is_wanted = |(case, samples): &&(C, Vec<S>)| !samples.is_empty() && is_wanted(*case);
        Self(self.0.iter().filter(is_wanted).cloned().collect())
    }

    /// Returns one value of each sample, for samples that have it.
    pub(crate) fn map(&self, value: impl Fn(&S) -> Option<f64>) -> Cells<C, f64> {
        let values = self.0.iter().map(|(case, samples)| {
            (*case, samples.iter().filter_map(&value).collect::<Vec<f64>>())
        });
        Cells(values.filter(|(_, values)| !values.is_empty()).collect())
    }

    /// Returns the only sample of a case that is counted; `None` if it was not.
    pub(crate) fn get(&self, case: C) -> Option<&S> {
        self.samples().find(|(counted, _)| *counted == case).map(|(_, sample)| sample)
    }
}

impl<C: Copy + PartialEq, S> Chart<C, S> {
    /// Draws the cells without claims; `None` if there are none.
    pub(crate) fn figure(&self, cells: &Cells<C, S>) -> Option<Figure> {
        let x = once(cells.cases().map(self.x));
        let names = once(cells.cases().map(self.line));
        let case = |x: &String, name: &str| {
            cells.cases().find(|case| (self.x)(*case) == *x && (self.line)(*case) == name)
        };
        let over = |name: &str, value: &dyn Fn(C) -> Option<Spread>| -> Vec<Option<Spread>> {
            x.iter().map(|x| value(case(x, name)?)).collect()
        };
        let draw = |(colour, series): (usize, Series)| {
            let shape = if series.is_reference && self.shape == Shape::Boxes {
                Shape::Line
            } else {
                self.shape
            };
            Series { shape, ..series }.colour(colour)
        };
        let ours = |name: &&'static str| match self.shape {
            Shape::Boxes => {
                let samples = x.iter().map(|x| cells.values(case(x, name), self.value));
                Series::boxes(*name, &samples.collect::<Vec<_>>())
            }
            _ => Series::of_spreads(*name, over(name, &|case| cells.spread(case, self.value))),
        };
        let paper = |name: &&'static str| {
            let values = x.iter().map(|x| (self.paper)(case(x, name)?)).collect();
            Series::reference(format!("paper: {name}"), values)
        };
        let has_values = |series: &Series| series.values.iter().any(Option::is_some);
        if x.is_empty() {
            return None;
        }
        let papers = names.iter().map(paper).enumerate().filter(|(_, it)| has_values(it));
        let series = names.iter().map(ours).enumerate().chain(papers).map(draw).collect();
        Some(Figure { number: self.number, x, series, ..Figure::default() })
    }
}

impl<C, S> Experiment for Scenario<C, S>
where
    C: Copy + PartialEq + Serialize + 'static,
    S: Serialize + 'static,
{
    fn steps(&self) -> Result<usize> {
        Ok(self.rounds * self.cases.len())
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Outcome> {
        let Self { cases, rounds, rotated, name, measure, line, .. } = self;
        let is_timed = self.basis.is_timed();
        let cases = Cases { cases, rounds: *rounds, rotated: *rotated };
        let samples = sampled(turns, is_timed, cases, (name, |case, _| measure(case), line))?;
        let cases = &self.cases;
        let is_intact = samples.iter().flatten().all(self.is_intact);
        let measured = cases.iter().zip(&samples).collect::<Vec<_>>();
        let measured = serde_json::to_value(measured)?;
        let cells = Cells(cases.iter().copied().zip(samples).collect());
        let figure = |chart: &Chart<C, S>| {
            let claims = (self.claims)(chart.number, &cells);
            Some(Figure { claims, ..chart.figure(&cells)? })
        };
        let outcome = Outcome::new(self.charts.iter().filter_map(figure).collect(), &measured)?;
        Ok(outcome.facts(self.facts.clone()).intact(is_intact))
    }

    fn needs_networks(&self) -> bool {
        self.basis.is_timed()
    }
}

/// Measures each case once or, if it takes real time, in turn in each round. Returns the samples of each case.
///
/// # Errors
/// The first error of `measure`, which is the second of the functions and takes a case and its round; the others
/// name a case and a result.
pub(crate) fn sampled<C: Copy, S>(
    turns: &Turns<'_>,
    is_timed: bool,
    cases: Cases<'_, C>,
    (name, measure, line): (
        impl Fn(C) -> String,
        impl Fn(C, usize) -> Result<S>,
        impl Fn(&S) -> String,
    ),
) -> Result<Vec<Vec<S>>> {
    if is_timed {
        return turns.measure(cases, name, measure, line);
    }
    let counts = turns.count(cases.cases, name, |case| measure(case, 0), line)?;
    Ok(counts.into_iter().map(|count| vec![count]).collect())
}

/// Returns each value once, in the order of its first occurrence: what several parts share is measured once.
pub(crate) fn once<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    values.into_iter().fold(Vec::new(), |mut all, value| {
        if !all.contains(&value) {
            all.push(value);
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    type Case = (&'static str, u8);

    const CHART: Chart<Case, f64> = Chart {
        number: "4",
        x: |(_, number)| number.to_string(),
        line: |(name, _)| name,
        value: |amount| *amount,
        paper: |(name, number)| (name == "b").then(|| f64::from(number)),
        shape: Shape::Bars,
    };

    #[test]
    fn a_chart_has_a_line_for_each_name_and_the_papers_where_it_has_values() {
        let scenario = Scenario {
            basis: Basis::Count,
            cases: vec![("a", 1), ("b", 1), ("b", 2)],
            rounds: 1,
            rotated: 1,
            name: |(name, number)| format!("{name}, {number}"),
            measure: Box::new(|(_, number)| Ok(2.0 * f64::from(number))),
            line: f64::to_string,
            charts: &[CHART],
            claims: |_, _| Vec::new(),
            is_intact: |_| true,
            facts: Vec::new(),
        };
        let stop = AtomicBool::new(false);
        let outcome = scenario.measure(&Turns::new(3, true, &stop)).unwrap();
        let [figure] = &outcome.figures[..] else { panic!("{outcome:?}") };
        let series: Vec<_> =
            figure.series.iter().map(|it| (it.name.as_str(), it.values.clone())).collect();
        assert_eq!(figure.x, ["1", "2"]);
        assert_eq!(
            series,
            [
                ("a", vec![Some(2.0), None]),
                ("b", vec![Some(2.0), Some(4.0)]),
                ("paper: b", vec![Some(1.0), Some(2.0)]),
            ]
        );
        assert_eq!(figure.series[1].colour, figure.series[2].colour);
        assert_eq!(outcome.measured["values"][2][1][0], 4.0);
        assert!(!scenario.needs_networks() && outcome.damage.is_none());
    }
}
