//! The paper's tables as figures, with the claims that they decide.
//!
//! Each group has a file: figures on [`virtual_time`], costs of the [`driver`] domain, costs of a [`guest`],
//! [`totals`] of both, and live [`guests`]. This file lists the figures, and finds the case of a system.

mod driver;
mod guest;
mod guests;
#[cfg(test)]
mod tests;
mod totals;
mod virtual_time;

use super::Measured;
use super::driver::Cost;
use super::guest::GuestCost;
use super::paper;
use super::system::System;
use super::virtual_time::Rate;
use crate::claim::Claim;
use crate::figure::{Figure, Series};

/// Returns every figure that was measured.
pub(super) fn all(measured: &Measured) -> Vec<Figure> {
    let Measured { rates, paced, exchanges, costs, guests, machines, requests, several } = measured;
    let (guests, without_gro): (Vec<_>, Vec<_>) = guests.iter().copied().partition(|cost| cost.gro);
    let mut figures = Vec::new();
    if !rates.is_empty() {
        figures.extend([virtual_time::aggregates(rates), virtual_time::holds(rates)]);
    }
    if !paced.is_empty() {
        figures.push(virtual_time::load(rates, paced));
    }
    if !costs.is_empty() {
        figures.extend([driver::table_v(costs), driver::sweep(costs), driver::copies(costs)]);
    }
    if !guests.is_empty() {
        figures.extend([
            guest::guest_share(&guests, &without_gro),
            guest::sweep(&guests),
            guest::guest_copies(&guests),
            guest::alignments(&guests),
        ]);
    }
    if !guests.is_empty() && !costs.is_empty() {
        let guests = [&guests[..], &without_gro];
        figures.extend([
            totals::table_v(costs, guests),
            totals::table_iv(costs, guests, machines),
            totals::shares(costs, guests),
        ]);
    }
    if !exchanges.is_empty() {
        figures.push(virtual_time::table_vii(exchanges));
    }
    if !requests.is_empty() {
        figures.extend(guests::requests(requests));
    }
    if !several.is_empty() {
        figures.extend([
            guests::several(several),
            guests::several_rate(several),
            guests::several_requests(several),
        ]);
    }
    figures
}

/// A measured case of a system.
trait Case {
    fn system(&self) -> System;
    fn frames_a_poll(&self) -> f64;
}

impl Case for Rate {
    fn system(&self) -> System {
        self.system
    }

    fn frames_a_poll(&self) -> f64 {
        self.frames_a_poll
    }
}

impl Case for Cost {
    fn system(&self) -> System {
        self.system
    }

    fn frames_a_poll(&self) -> f64 {
        self.frames_a_poll
    }
}

impl Case for GuestCost {
    fn system(&self) -> System {
        self.system
    }

    fn frames_a_poll(&self) -> f64 {
        self.frames_a_poll
    }
}

fn at<C: Case>(cases: &[C], system: System, frames_a_poll: f64) -> Option<&C> {
    cases.iter().find(|case| case.system() == system && case.frames_a_poll() == frames_a_poll)
}

fn cost_at(costs: &[Cost], system: System, frames_a_poll: f64) -> Option<f64> {
    at(costs, system, frames_a_poll).map(|cost| cost.instructions_a_byte)
}

/// Returns the measured numbers of frames per poll, in the order of the first system.
fn frames<C: Case>(cases: &[C]) -> Vec<f64> {
    let Some(first) = cases.first().map(Case::system) else { return Vec::new() };
    cases.iter().filter(|case| case.system() == first).map(Case::frames_a_poll).collect()
}

fn polls<C: Case>(cases: &[C]) -> Vec<String> {
    frames(cases).iter().map(f64::to_string).collect()
}

/// Returns a line over frames per poll for each system.
fn lines<C: Case>(cases: &[C], systems: &[System], value: impl Fn(&C) -> f64) -> Vec<Series> {
    let frames = frames(cases);
    let line = |system: &System| {
        let colour = Some(colour(*system));
        let values = frames.iter().map(|frames| at(cases, *system, *frames).map(&value));
        Series { colour, ..Series::new(system.name(), values.collect()) }
    };
    systems.iter().map(line).collect()
}

/// Returns the paper's points of LRO and DA at its frames per poll, as shares of Xen's value, because the
/// paper's unit is cycles.
fn points<C: Case>(
    cases: &[C],
    value: impl Fn(&C) -> f64,
    cycles: fn(System) -> Option<f64>,
) -> [Series; 2] {
    let xen = at(cases, System::Xen, paper::FRAMES_A_POLL).map(value);
    let point = |system| {
        let share = cycles(system).zip(cycles(System::Xen));
        let value = xen.zip(share).map(|(xen, (cycles, of_xen))| xen * cycles / of_xen);
        let is_here = |frames: &f64| *frames == paper::FRAMES_A_POLL;
        let values = frames(cases).iter().map(|at| value.filter(|_| is_here(at))).collect();
        let packets = paper::packets_an_aggregate(system).unwrap_or_default();
        let name = format!("the paper's {}, {packets} packets an aggregate", system.name());
        Series::reference(name, values).colour(colour(system))
    };
    [System::Lro, System::Da].map(point)
}

/// Returns the colour of a system. The colour also selects the shape of points, which repeats after four, so
/// auto differs from the paper's systems drawn with it.
fn colour(system: System) -> usize {
    let place = System::ALL.iter().position(|one| *one == system);
    match system {
        System::Auto => 7,
        System::Da4 => 6,
        // Linux has no driver domain, so Linux and Pages are never drawn together.
        System::Pages => 0,
        _ => place.unwrap_or_default(),
    }
}

/// Makes a claim about a share of Xen's value. `what` names the measured case.
fn share(id: &str, value: Option<f64>, what: &str) -> Claim {
    Claim::new(id, value, format!("{what}."))
}

fn shown(value: Option<f64>) -> String {
    value.map_or("nothing".to_owned(), |value| format!("{value:.2}"))
}
