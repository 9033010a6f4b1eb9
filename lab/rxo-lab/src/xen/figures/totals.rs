//! Total cost of driver domain and guest, and the derived rates: Tables V, IV and I.

use super::{at, cost_at, shown};
use crate::claim::Claim;
use crate::figure::{Figure, Series};
use crate::xen::driver::Cost;
use crate::xen::guest::GuestCost;
use crate::xen::guest::rate::GuestRate;
use crate::xen::paper;
use crate::xen::system::System;
use rxo_demo::stats::Spread;

/// Cost per byte of each system at the paper's frames per poll.
#[derive(Clone, Copy)]
struct Bytes<'c> {
    costs: &'c [Cost],
    guests: &'c [GuestCost],
}

impl Bytes<'_> {
    /// Returns the instructions per byte of driver domain and guest. Linux has no driver domain.
    fn total(self, system: System) -> Option<f64> {
        let guest = at(self.guests, system, paper::FRAMES_A_POLL)?.instructions_a_byte;
        match system {
            System::Linux => Some(guest),
            _ => Some(guest + cost_at(self.costs, system, paper::FRAMES_A_POLL)?),
        }
    }

    /// Returns the total as a share of Xen's.
    fn share(self, system: System) -> Option<f64> {
        Some(self.total(system)? / self.total(System::Xen)?)
    }

    /// Returns the rate of one core that spends all its time on this cost, in Mbit/s.
    fn unlimited(self, system: System) -> Option<f64> {
        Some(paper::LINUX_MBIT_PER_S * self.total(System::Linux)? / self.total(system)?)
    }

    /// Returns that rate, limited by the link's payload rate.
    fn rate(self, system: System) -> Option<f64> {
        Some(self.unlimited(system)?.min(paper::LINK_MBIT_PER_S))
    }

    /// Returns the ratio of this system's rate to that of `other`.
    fn times(self, system: System, other: System) -> Option<f64> {
        Some(self.rate(system)? / self.rate(other)?)
    }

    fn said(self, system: System) -> String {
        format!(
            "{} Mbit/s, {} times Xen's",
            shown(self.rate(system)),
            shown(self.times(system, System::Xen))
        )
    }
}

/// Returns the costs with the guest's GRO, and without it.
fn both<'c>(costs: &'c [Cost], guests: [&'c [GuestCost]; 2]) -> [Bytes<'c>; 2] {
    guests.map(|guests| Bytes { costs, guests })
}

fn column(of: impl Fn(System) -> Option<f64>) -> Vec<Option<f64>> {
    System::RECEIVERS.map(of).to_vec()
}

fn names() -> Vec<String> {
    System::RECEIVERS.map(|system| system.name().to_owned()).to_vec()
}

/// Draws the last row of Table V: driver domain and guest together.
pub(super) fn table_v(costs: &[Cost], guests: [&[GuestCost]; 2]) -> Figure {
    let [today, as_then] = both(costs, guests);
    let of_xen = |system| Some(paper::total_cycles(system)? / paper::total_cycles(System::Xen)?);
    let da = as_then.share(System::Da);
    let of_linux = as_then.total(System::Da).zip(as_then.total(System::Linux));
    Figure {
        number: "Table V total",
        x: names(),
        series: vec![
            Series::new("its GRO off", column(|system| as_then.share(system))).bars(),
            Series::new("its GRO on", column(|system| today.share(system))).bars(),
            Series::reference("the paper", column(of_xen)).bars(),
        ],
        claims: vec![
            Claim::new(
                "xen.table-v.total",
                da,
                format!(
                    "GRO off: {} instructions a byte under Xen, {} under DA, {} under Linux.",
                    shown(as_then.total(System::Xen)),
                    shown(as_then.total(System::Da)),
                    shown(as_then.total(System::Linux))
                ),
            ),
            Claim::new("xen.table-v.total.linux", of_linux.map(|(da, linux)| da / linux), None),
        ],
        ..Figure::default()
    }
}

/// Draws Tables IV and I: derived for a guest of today, derived for one without GRO as in the paper, and
/// measured on the paper's machine.
pub(super) fn table_iv(
    costs: &[Cost],
    guests: [&[GuestCost]; 2],
    machines: &[GuestRate],
) -> Figure {
    let [today, as_then] = both(costs, guests);
    let measured = |system| {
        let of_system = machines.iter().filter(|machine| machine.system == system);
        Spread::of(of_system.map(|machine| machine.mbit_per_s))
    };
    let percent = |id, system, of| {
        let times = as_then.times(system, of);
        let detail = format!(
            "Derived for a guest whose GRO is off, as the paper's had none: {}; without the link's {} Mbit/s it would \
             have {}. With GRO: {}.",
            as_then.said(system),
            paper::LINK_MBIT_PER_S,
            shown(as_then.unlimited(system)),
            today.said(system)
        );
        Claim::new(id, times.map(|times| 100.0 * times), detail)
    };
    Figure {
        number: "Table IV",
        x: names(),
        series: vec![
            Series::new("derived, GRO off", column(|system| as_then.rate(system))).bars(),
            Series::new("derived, GRO on", column(|system| today.rate(system))).bars(),
            Series::of_spreads("measured", System::RECEIVERS.map(measured).to_vec()).bars(),
            Series::reference("the paper", column(paper::mbit_per_s)).bars(),
            Series::reference("the paper, Table I", column(paper::earlier_mbit_per_s)).bars(),
        ],
        claims: vec![
            percent("xen.table-iv.da", System::Da, System::Xen),
            percent("xen.table-iv.da.linux", System::Da, System::Linux),
            percent("xen.table-iv.lro", System::Lro, System::Xen),
            percent("xen.table-iv.lro.linux", System::Lro, System::Linux),
        ],
        ..Figure::default()
    }
}

/// Draws the other columns of Table IV: rates in percent of Linux's and of Xen's.
pub(super) fn shares(costs: &[Cost], guests: [&[GuestCost]; 2]) -> Figure {
    let [today, as_then] = both(costs, guests);
    let percent = |bytes: Bytes<'_>, other| {
        column(|system| bytes.times(system, other).map(|times| 100.0 * times))
    };
    let papers = |other| {
        let of = |system| Some(100.0 * paper::mbit_per_s(system)? / paper::mbit_per_s(other)?);
        column(of)
    };
    let columns = [("Linux's", System::Linux), ("Xen's", System::Xen)];
    let series = columns.into_iter().enumerate().flat_map(|(colour, (name, other))| {
        [
            Series::new(format!("% of {name}, GRO off"), percent(as_then, other))
                .colour(2 * colour),
            Series::new(format!("% of {name}, GRO on"), percent(today, other))
                .colour(2 * colour + 1),
            Series::reference(format!("the paper, % of {name}"), papers(other)).colour(2 * colour),
        ]
    });
    Figure {
        number: "Table IV in percent",
        x: names(),
        series: series.map(Series::bars).collect(),
        ..Figure::default()
    }
}
