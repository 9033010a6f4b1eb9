//! `rxo demo`: runs the same transfer over five paths, in network namespaces of its own. With `--reverse` it measures
//! the sender's side ([`reverse`]).
//!
//! The flags become a [`plan`]. The [`path`]s are measured in turn: [`measure`] runs the [`transfer`]s,
//! through rxo in a [`manner`] if the path includes it. The samples become rows ([`row`]), and the rows
//! become [`findings`] with a [`sentence`].

mod findings;
mod floor;
mod manner;
mod measure;
mod path;
mod plan;
pub(crate) mod reverse;
mod row;
mod sample;
mod sentence;
mod side_by_side;
mod transfer;

use anyhow::Result;

use self::findings::DemoFindings;
use self::path::Path;
pub(crate) use self::plan::Plan;
use self::row::Row;
use self::sample::Sample;
use crate::experiment::{Experiment, Output};
use crate::turns::{Cases, Turns};

impl Experiment for Plan {
    type Findings = DemoFindings;

    fn steps(&self) -> Result<usize> {
        Ok(self.rounds * self.paths().len())
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<DemoFindings> {
        let paths = self.paths();
        let cases = Cases { cases: paths, rounds: self.rounds, rotated: paths.len() };
        let name = |path: Path| path.name().to_owned();
        let samples = turns.measure(cases, name, |path, _| measure::measure(path, self), line)?;
        let rows = paths.iter().zip(&samples);
        let rows = rows.filter_map(|(&path, samples)| Row::of(path, self.connections, samples));
        Ok(DemoFindings::new(rows.collect(), self))
    }

    fn notes(&self, found: &DemoFindings) -> Vec<String> {
        vec![found.legend()]
    }

    fn output(&self) -> &Output {
        &self.output
    }
}

fn line(sample: &Sample) -> String {
    let Sample { gbit_per_s, cpu_s_per_gb, rr_p50_us, .. } = sample;
    format!(
        "{gbit_per_s:>5.1} Gbit/s  {cpu_s_per_gb:>5.2} CPU s/GB  {rr_p50_us:>4.0} us request/response"
    )
}
