//! Counts the cost of a request: runs the [`server`](super::server) under callgrind twice, once counting
//! everything, and once only the host's receiving. Both runs execute the same instructions.

use anyhow::{Result, ensure};
use rxo_console::numbers::ratio;
use serde::{Serialize, Serializer};

use super::case::Case;
use super::category::{Component, Costs, Part, components};
use super::plan::Scale;
use super::server::{COUNTED, Parameters, Served, WINDOW};
use crate::callgrind;
use crate::folder::Folder;
use crate::process::Process;
use crate::step;

/// Cost of one request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Cost {
    #[serde(flatten)]
    pub(super) case: Case,
    /// `true` if costs are estimated cycles from simulated caches; otherwise they are instructions.
    pub(super) is_simulated: bool,
    /// Cost of a request, by component.
    #[serde(serialize_with = "by_name")]
    pub(super) components: Costs,
    pub(super) acks_a_segment: f64,
    pub(super) acks_a_request: f64,
    /// Share of pure ACKs in the received packets, in percent.
    pub(super) pure_acks_percent: f64,
    /// ACKs that the fast path passed to a connection per call; 0 without the fast path.
    pub(super) acks_a_call: f64,
    pub(super) served: Served,
}

/// Counts `case`. With `is_simulated`, callgrind simulates caches too, and costs are estimated cycles.
///
/// # Errors
/// If valgrind is missing, or the process under it fails.
pub(super) fn count(case: Case, scale: Scale, is_simulated: bool) -> Result<Cost> {
    let (served, all) = run(case, scale, (COUNTED, is_simulated))?;
    let (again, receiving) = run(case, scale, (RECEIVES, is_simulated))?;
    ensure!(served == again, "two runs of one case differ: {served:?}, {again:?}");
    Ok(Cost::of(case, is_simulated, served, components(all, receiving)))
}

impl Cost {
    pub(super) fn of(case: Case, is_simulated: bool, served: Served, costs: Costs) -> Self {
        let tally = served.tally;
        let requests = ratio(tally.bytes as f64, case.file_bytes as f64);
        let per = |count: u64, of: u64| ratio(count as f64, of as f64);
        Self {
            case,
            is_simulated,
            components: costs.map(|cost| ratio(cost, requests)),
            acks_a_segment: per(tally.acks, tally.segments),
            acks_a_request: ratio(tally.acks as f64, requests),
            pure_acks_percent: 100.0 * per(tally.acks, tally.packets),
            acks_a_call: per(served.consumed, served.calls),
            served,
        }
    }

    /// Returns the total cost of a request.
    pub(super) fn total(&self) -> f64 {
        self.components.iter().sum()
    }

    pub(super) const fn component(&self, component: Component) -> f64 {
        self.components[component as usize]
    }
}

fn by_name<S: Serializer>(costs: &Costs, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(Component::ALL.iter().zip(costs))
}

fn run(
    case: Case,
    scale: Scale,
    (counted, is_simulated): (&str, bool),
) -> Result<(Served, [f64; Part::COUNT])> {
    let folder = Folder::new("paro")?;
    let profile = folder.file("callgrind.out");
    let forget = format!("--zero-before=*{WINDOW}*");
    let mut options = vec![forget.as_str()];
    if is_simulated {
        options.extend(CACHES);
    }
    let mut command = callgrind::command(counted, &profile, &options)?;
    command.args(step::arguments("Server", &Parameters { case, scale })?);
    let served = Process::spawn("the server under valgrind", &mut command)?.finish()?;
    let costs = callgrind::read(&profile, |origin| Part::of(origin) as usize)?;
    Ok((served, costs))
}

/// The host's receiving function, for callgrind's option.
const RECEIVES: &str = "Host<I,O>::receive";
/// Callgrind options for a first-level cache of 32 KiB and a last-level cache of 8 MiB, as in the paper's
/// Nehalem.
const CACHES: [&str; 4] =
    ["--cache-sim=yes", "--I1=32768,4,64", "--D1=32768,8,64", "--LL=8388608,16,64"];
