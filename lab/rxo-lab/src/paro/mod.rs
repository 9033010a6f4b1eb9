//! `rxo-lab paro`: Chan and Cheriton, "Improving Server Application Performance via Pure TCP ACK Receive
//! Optimization" (2013): measures the saving of the fast path for pure ACKs in a file server.
//!
//! The saving is measured twice. *Counted*: the host and the HTTP server run on a ring in shared memory
//! ([`server`]), with modelled [`clients`] at its other end, under callgrind ([`count`]); the count is exact
//! on any machine. *Live*: `rxo serve` runs behind `rxo card` with Linux clients ([`live`]), for its
//! processor time. A [`case`] is a way of ACKs, a file size and an ACK rate. The [`figures`] show the values
//! of the [`paper`] beside ours.

mod app;
mod case;
mod category;
mod clients;
mod count;
mod figures;
mod live;
mod paper;
mod plan;
pub(crate) mod server;
mod stamped;

use anyhow::Result;
use rxo_demo::turns::{Cases, Turns};
use serde::{Serialize, Serializer};

use self::case::Case;
use self::count::Cost;
use self::live::{Live, Window};
pub(crate) use self::plan::{PARTS, Plan};
use crate::runner::{Experiment, Outcome};

/// The results of all measurements.
#[derive(Clone, Debug, Default, Serialize)]
struct Measured {
    /// Instructions of requests, for each counted case.
    costs: Vec<Cost>,
    /// Estimated cycles of requests, for each simulated case.
    cycles: Vec<Cost>,
    /// Windows of the live server, by way.
    #[serde(serialize_with = "by_way")]
    windows: Vec<(case::Way, Vec<Window>)>,
}

fn by_way<S: Serializer>(
    windows: &[(case::Way, Vec<Window>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(windows.iter().map(|(way, windows)| (way, windows)))
}

impl Experiment for Plan {
    fn prepare(&self) -> Result<()> {
        let is_nothing_counted = self.counted.is_empty() && self.simulated.is_empty();
        if is_nothing_counted { Ok(()) } else { crate::callgrind::check() }
    }

    fn steps(&self) -> Result<usize> {
        Ok(self.counted.len() + self.simulated.len() + self.rounds * live::WAYS.len())
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Outcome> {
        let costs = self.count(turns, &self.counted, false)?;
        let cycles = self.count(turns, &self.simulated, true)?;
        let windows = self.measure_live(turns)?;
        let measured = Measured { costs, cycles, windows };
        Ok(Outcome::new(figures::all(&measured), &measured)?.facts(self.facts()))
    }

    fn needs_networks(&self) -> bool {
        self.rounds > 0
    }
}

impl Plan {
    fn count(&self, turns: &Turns<'_>, cases: &[Case], is_simulated: bool) -> Result<Vec<Cost>> {
        turns.count(
            cases,
            Case::name,
            |case| count::count(case, self.scale, is_simulated),
            |cost| format!("{:.2} million a request", cost.total() / 1e6),
        )
    }

    fn measure_live(&self, turns: &Turns<'_>) -> Result<Vec<(case::Way, Vec<Window>)>> {
        if self.rounds == 0 || turns.is_ended() {
            return Ok(Vec::new());
        }
        let mut live = Live::start(self)?;
        let windows = turns.measure(
            Cases { cases: &live::WAYS, rounds: self.rounds, rotated: live::WAYS.len() },
            |way| format!("live, {}", way.title()),
            |way, _| live.measure(way),
            |window| format!("{:.0} us a request", window.us_a_request),
        )?;
        live.finish()?;
        Ok(live::WAYS.into_iter().zip(windows).collect())
    }
}
