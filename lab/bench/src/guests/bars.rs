//! The targets for guests, with verdicts from this run.

use serde::Serialize;

use super::Row;
use super::domain::Domain;
use super::requests::Requests;
use super::together::Together;

/// A target with the measured value.
#[derive(Debug, Serialize)]
pub(super) struct Bar {
    what: &'static str,
    measured: f64,
    least: Option<f64>,
    most: Option<f64>,
    /// `true` if the value depends on time, which other processes consume.
    is_timed: bool,
    /// The verdict; `None` if the measurement does not decide it.
    holds: Option<bool>,
}

impl Bar {
    /// Makes a bar for a count that must not exceed `most`.
    fn at_most(what: &'static str, measured: f64, most: f64) -> Self {
        let holds = Some(measured <= most);
        Self { what, measured, least: None, most: Some(most), is_timed: false, holds }
    }

    /// Makes a bar for a count that must reach `least`.
    fn at_least(what: &'static str, measured: f64, least: f64) -> Self {
        let holds = Some(measured >= least);
        Self { what, measured, least: Some(least), most: None, is_timed: false, holds }
    }

    /// Makes a bar for a ratio of times, whose median lies in the confidence interval `bounds`. The verdict
    /// is open unless it is the same for the whole interval.
    fn within(
        what: &'static str,
        measured: f64,
        bounds: Option<(f64, f64)>,
        [least, most]: [f64; 2],
    ) -> Self {
        let holds = bounds.and_then(|(low, high)| match () {
            () if low >= least && high <= most => Some(true),
            () if high < least || low > most => Some(false),
            () => None,
        });
        Self { what, measured, least: Some(least), most: Some(most), is_timed: true, holds }
    }

    const fn timed(self) -> Self {
        Self { is_timed: true, ..self }
    }

    /// Withdraws the verdict if the value depends on time.
    pub(super) const fn withhold(&mut self) {
        if self.is_timed {
            self.holds = None;
        }
    }
}

/// Frames per packet from which a driver domain counts as coalescing; one that only forwards frames is no
/// comparison.
const COALESCES: f64 = 1.5;

/// Accepted ratio of the request rates with adaptive hold and without coalescing: within 2 %.
pub(super) const REQUESTS: [f64; 2] = [0.98, 1.02];

/// Returns the bars for which figures exist. A testpmd that coalesced nothing gives none.
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
        ratio(merged(true), Domain::TAP, cost).map(|ratio| {
            Bar::at_least("goodput a CPU second, vhost: over tap:", ratio, 1.5).timed()
        }),
        testpmd(instructions).map(|ratio| Bar::at_most("guest, of one behind testpmd", ratio, 1.0)),
        testpmd(cost).map(|ratio| {
            Bar::at_least("goodput a CPU second, rxo over testpmd", ratio, 1.0).timed()
        }),
        requests.filter(|requests| requests.is_precise()).map(|requests| {
            let what = "requests a second, --hold auto over no coalescing";
            Bar::within(what, requests.ratio(), requests.bounds(), REQUESTS)
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
    fn requests_have_a_verdict_only_where_chance_cannot_decide_it() {
        let rows = [
            (Some((0.985, 1.01)), Some(true)),
            (Some((0.97, 0.979)), Some(false)),
            (Some((1.021, 1.05)), Some(false)),
            (Some((0.97, 0.99)), None),
            (Some((0.99, 1.03)), None),
            (Some((0.5, 2.0)), None),
            (None, None),
        ];
        for (bounds, verdict) in rows {
            let bar = Bar::within("requests", 1.0, bounds, REQUESTS);
            assert_eq!(bar.holds, verdict, "{bounds:?}");
        }
    }

    #[test]
    fn a_busy_machine_takes_back_what_depends_on_time() {
        let [mut counted, mut timed] =
            [false, true].map(|is_timed| Bar { is_timed, ..Bar::at_least("goodput", 2.0, 1.5) });
        counted.withhold();
        timed.withhold();
        assert_eq!((counted.holds, timed.holds), (Some(true), None));
    }
}
