//! `rxo-lab paro`: Chan and Cheriton, "Improving Server Application Performance via Pure TCP ACK Receive
//! Optimization" (2013): measures the saving of the fast path for pure ACKs in a file server.
//!
//! The saving is measured twice. *Counted*: the host and the HTTP server run on a ring in shared memory
//! ([`server`]), with modelled [`clients`] at its other end, under callgrind ([`count`]); the count is exact
//! on any machine. *Live*: `rxo serve` runs behind `rxo card` with Linux clients ([`live`]), for its
//! processor time. A [`case`] is a way of ACKs, a file size and an ACK rate. The [`findings`] show the values
//! of the [`paper`] beside ours.

mod app;
mod case;
mod category;
mod clients;
mod count;
mod figures;
mod findings;
mod live;
mod paper;
mod plan;
pub(crate) mod server;
mod stamped;
mod table;

use anyhow::Result;
use rxo_demo::experiment::{Experiment, Output};
use rxo_demo::turns::{Cases, Turns};

use self::case::Case;
use self::count::Cost;
use self::findings::{Found, Measured};
use self::live::{Live, Window};
pub(crate) use self::plan::Plan;

impl Experiment for Plan {
    type Findings = Found;

    fn steps(&self) -> Result<usize> {
        Ok(self.counted.len() + self.simulated.len() + self.rounds * live::WAYS.len())
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Found> {
        let costs = self.count(turns, &self.counted, false)?;
        let cycles = self.count(turns, &self.simulated, true)?;
        let windows = self.measure_live(turns)?;
        Ok(Found::new(Measured { costs, cycles, windows }))
    }

    fn notes(&self, _: &Found) -> Vec<String> {
        findings::notes(self)
    }

    fn output(&self) -> &Output {
        &self.output
    }

    fn needs_networks(&self) -> bool {
        self.rounds > 0
    }
}

impl Plan {
    fn count(&self, turns: &Turns<'_>, cases: &[Case], is_simulated: bool) -> Result<Vec<Cost>> {
        let counts = turns.measure(
            Cases { cases, rounds: 1, rotated: 1 },
            Case::name,
            |case, _| count::count(case, self.scale, is_simulated),
            |cost| format!("{:.2} million a request", cost.total() / 1e6),
        )?;
        Ok(counts.concat())
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
