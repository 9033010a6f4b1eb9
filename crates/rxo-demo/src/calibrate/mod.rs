//! `rxo calibrate`: measures the cost of receiving on this machine, for projections.
//!
//! The flags become a [`plan`]. [`run`] measures the plan's settings in turn, in network namespaces of its
//! own, those of the kernel's own path by [`kernel`]; [`engine`] measures the engine alone in memory. [`result`] fits costs to
//! the samples by least squares, and computes the spread of each cost over the rounds. [`costs`] reads a file that `--save FILE`
//! has written, for `rxo analyze --costs FILE`.

pub mod costs;
mod engine;
mod kernel;
mod plan;
mod result;
mod run;
mod window;

use anyhow::{Context, Result, bail};

use self::engine::Workload;
use self::kernel::KernelPath;
pub(crate) use self::plan::Plan;
use self::plan::Setting;
use self::result::{Calibration, Measured};
use self::run::Sample;
use self::window::Reserve;
use crate::experiment::{Experiment, Output};
use crate::turns::{Cases, Turns};

impl Experiment for Plan {
    type Findings = Calibration;

    fn steps(&self) -> Result<usize> {
        Ok(self.rounds * self.settings.len())
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Calibration> {
        let (workload, kernel) = (Workload::new(), KernelPath::open()?);
        let plan = if kernel.is_some() { self.clone() } else { self.without_kernel() };
        let reserve = Reserve::of(plan.duration);
        let mut coalesce_ns = Vec::new();
        let measure = |setting: Setting, round: usize| {
            if coalesce_ns.len() <= round {
                coalesce_ns.push(workload.ns_per_packet(plan.engine));
            }
            match setting.kernel_pace().zip(kernel.as_ref()) {
                Some((pace, kernel)) => kernel.measure(setting, pace, &plan, &reserve),
                None => run::measure(setting, &plan, &reserve),
            }
        };
        let settings = plan.settings;
        let cases = Cases { cases: settings, rounds: plan.rounds, rotated: settings.len() };
        let samples = turns.measure(cases, |setting| setting.to_string(), measure, line)?;
        if samples.iter().any(Vec::is_empty) {
            bail!("stopped by a signal before every setting was measured once");
        }
        let samples = settings.iter().copied().zip(samples).collect();
        Calibration::of(&Measured { samples, coalesce_ns }, &plan).context(
            "the measurements do not tell the costs of packets and bytes apart: the machine is too \
             busy; run it when less else runs, or with a larger --seconds",
        )
    }

    fn notes(&self, found: &Calibration) -> Vec<String> {
        vec![found.legend()]
    }

    fn output(&self) -> &Output {
        &self.output
    }
}

fn line(sample: &Sample) -> String {
    let Sample { ns, gbit_per_s, deliveries, waited, .. } = sample;
    let waited = match waited.is_zero() {
        true => String::new(),
        false => format!("  after {:.1} s with too few packets", waited.as_secs_f64()),
    };
    format!(
        "{:>5.1} packets per delivery  {ns:>6.0} ns per packet  {gbit_per_s:>5.1} Gbit/s{waited}",
        1.0 / deliveries
    )
}
