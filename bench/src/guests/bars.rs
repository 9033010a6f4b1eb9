//! What is promised of guests, and whether it was so in this run.

use std::fmt;

use serde::Serialize;

use super::Row;
use super::domain::Domain;
use super::requests::Requests;
use super::together::Together;

/// A promise and what was measured.
#[derive(Debug, Serialize)]
pub(super) struct Bar {
    what: &'static str,
    measured: f64,
    bound: f64,
    is_least: bool,
    holds: bool,
}

impl Bar {
    fn at_most(what: &'static str, measured: f64, bound: f64) -> Self {
        Self { what, measured, bound, is_least: false, holds: measured <= bound }
    }

    fn at_least(what: &'static str, measured: f64, bound: f64) -> Self {
        Self { what, measured, bound, is_least: true, holds: measured >= bound }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_least { "at least" } else { "at most" };
        let verdict = if self.holds { "holds" } else { "MISSED" };
        write!(f, "{}: {:.2}, {word} {:.2}: {verdict}", self.what, self.measured, self.bound)
    }
}

/// Frames a packet from which on a driver domain coalesces: one that passes frames on is no comparison.
const COALESCES: f64 = 1.5;

/// Requests with adaptive hold for one without coalescing.
pub(super) const LEAST_REQUESTS: f64 = 0.98;

/// The bars for which there are figures. There are none with a testpmd that coalesced nothing.
pub(super) fn hold(
    rows: &[Row],
    requests: Option<&Requests>,
    together: Option<&Together>,
) -> Vec<Bar> {
    let of = |domain: Domain| rows.iter().find(|row| row.system == domain.name());
    let ratio = |one: Domain, other: Domain, figure: fn(&Row) -> f64| {
        Some(figure(of(one)?) / figure(of(other)?))
    };
    let instructions: fn(&Row) -> f64 = |row| row.guest_instructions_a_frame;
    let cost: fn(&Row) -> f64 = |row| row.megabytes_a_cpu_second;
    let (plain, merged) = (Domain::plain, Domain::coalescing);
    let testpmd = |figure| {
        let coalesces = of(Domain::TESTPMD)?.frames_a_packet >= COALESCES;
        coalesces.then(|| ratio(merged(true), Domain::TESTPMD, figure))?
    };
    let bars = [
        ratio(merged(true), plain(true), instructions)
            .map(|ratio| Bar::at_most("guest, of its own GRO", ratio, 0.30)),
        ratio(merged(false), plain(false), instructions)
            .map(|ratio| Bar::at_most("guest without GRO, of one without coalescing", ratio, 0.68)),
        ratio(plain(false), merged(false), instructions)
            .map(|ratio| Bar::at_least("bytes an instruction of Linux's own stack", ratio, 1.86)),
        ratio(merged(true), Domain::TAP, cost)
            .map(|ratio| Bar::at_least("goodput a CPU second, vhost: over tap:", ratio, 1.5)),
        testpmd(instructions).map(|ratio| Bar::at_most("guest, of one behind testpmd", ratio, 1.0)),
        testpmd(cost)
            .map(|ratio| Bar::at_least("goodput a CPU second, rxo over testpmd", ratio, 1.0)),
        requests.filter(|requests| requests.tells()).map(|requests| {
            Bar::at_least(
                "requests a second, --hold auto over no coalescing",
                requests.ratio(),
                LEAST_REQUESTS,
            )
        }),
        together.map(|it| {
            Bar::at_most("guests at once without the right file", it.broken() as f64, 0.0)
        }),
        together.map(|it| Bar::at_least("copies of a byte into guests", it.copies[0], 1.0)),
        together.map(|it| Bar::at_most("copies of a byte into guests", it.copies[1], 1.0)),
    ];
    bars.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_testpmd_that_passes_frames_on_is_no_comparison() {
        let row = |domain: Domain, frames_a_packet| Row {
            system: domain.name(),
            guest_instructions_a_frame: 1_000.0,
            frames_a_packet,
            megabytes_a_cpu_second: 1.0,
            megabytes_a_domain_second: 1.0,
        };
        let bars = |frames_a_packet| {
            let rows = [row(Domain::coalescing(true), 20.0), row(Domain::TESTPMD, frames_a_packet)];
            hold(&rows, None, None).len()
        };
        assert_eq!((bars(1.0), bars(20.0)), (0, 2));
    }

    #[test]
    fn a_bar_that_is_missed_says_so() {
        let row = |domain: Domain, guest_instructions_a_frame| Row {
            system: domain.name(),
            guest_instructions_a_frame,
            frames_a_packet: 1.0,
            megabytes_a_cpu_second: 1.0,
            megabytes_a_domain_second: 1.0,
        };
        let rows = [row(Domain::plain(true), 1_000.0), row(Domain::coalescing(true), 310.0)];
        let bars: Vec<String> = hold(&rows, None, None).iter().map(Bar::to_string).collect();
        assert_eq!(bars, ["guest, of its own GRO: 0.31, at most 0.30: MISSED"]);
    }
}
