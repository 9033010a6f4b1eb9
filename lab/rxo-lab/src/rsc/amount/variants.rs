//! Figures 6 to 8: variants of the paper's card, for 16 connections; each capture that the user brought has a
//! line of its own.

use super::super::ceiling::ceiling;
use super::super::examine::{BUFFERS_KB, ENTRIES, Examined, WINDOWS};
use super::{Captures, least};
use crate::claim::Claim;
use crate::figure::{Figure, Guide, Series};

pub(super) fn figure_6(captures: Captures<'_>) -> Figure {
    Figure {
        number: "6",
        x: ENTRIES.iter().map(ToString::to_string).collect(),
        series: lines(captures, None, |examined| &examined.by_entries),
        claims: three_entries(captures).into_iter().collect(),
        ..Figure::default()
    }
}

pub(super) fn figure_7(captures: Captures<'_>) -> Figure {
    Figure {
        number: "7",
        x: BUFFERS_KB.iter().map(|kb| format!("{kb} KB")).collect(),
        series: lines(captures, None, |examined| &examined.by_buffer),
        claims: small_payloads(captures).into_iter().chain(larger_payloads(captures)).collect(),
        ..Figure::default()
    }
}

pub(super) fn figure_8(captures: Captures<'_>) -> Figure {
    let claims = [sixteen_packets(captures), from_16_to_32(captures), beyond_32(captures)];
    Figure {
        number: "8",
        x: WINDOWS.iter().map(ToString::to_string).collect(),
        series: lines(captures, Some(&FIGURE_8_KB), |examined| &examined.by_window),
        guides: vec![Guide { value: 5_000.0, meaning: "the paper: more than 50 % with 16" }],
        claims: claims.into_iter().flatten().collect(),
        ..Figure::default()
    }
}

/// Returns a line for each payload (only those in `wanted`, if given), then one for each brought capture.
fn lines(
    captures: Captures<'_>,
    wanted: Option<&[usize]>,
    values: fn(&Examined) -> &Vec<f64>,
) -> Vec<Series> {
    let line = |name: String, examined| {
        Series::new(name, values(examined).iter().copied().map(Some).collect())
    };
    let payloads = captures.payloads_kb().into_iter();
    let payloads = payloads.filter(|kb| wanted.is_none_or(|wanted| wanted.contains(kb)));
    let of_lab = payloads.filter_map(|kb| Some(line(format!("{kb} KB"), captures.of(16, kb)?)));
    let others = captures.others().map(|examined| line(examined.name.clone(), examined));
    of_lab.chain(others).collect()
}

/// Returns the capture with 16 connections for each payload.
fn of_sixteen(captures: Captures<'_>) -> Vec<(usize, &Examined)> {
    let payloads = captures.payloads_kb().into_iter();
    payloads.filter_map(|kb| captures.of(16, kb).map(|examined| (kb, examined))).collect()
}

fn three_entries(captures: Captures<'_>) -> Option<Claim> {
    let share = |(kb, examined): (usize, &Examined)| {
        let most = examined.by_entries.iter().copied().fold(0.0, f64::max);
        (most > 0.0).then(|| (kb, examined.by_entries[2] / most, examined.by_entries[0] / most))
    };
    let shares: Vec<_> = of_sixteen(captures).into_iter().filter_map(share).collect();
    let (kb, three, _) = shares.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let one = least(shares.iter().map(|share| share.2))?;
    let detail = format!("The least is at {kb} KB; 1 entry has at least {one:.2}.");
    let mixed = most_mixed(captures);
    Some(Claim::new("rsc.fig6.three", Some(three), detail).because(|| {
        format!("In a window of 20 packets there are up to {mixed:.1} flows on the average.")
    }))
}

fn most_mixed(captures: Captures<'_>) -> f64 {
    let flows = of_sixteen(captures).into_iter();
    flows.map(|(_, examined)| examined.interleaving.flows_per_window).fold(0.0, f64::max)
}

fn small_payloads(captures: Captures<'_>) -> Option<Claim> {
    let small = [2, 4].into_iter().filter_map(|kb| captures.of(16, kb));
    let differences = small.map(|examined| (examined.by_buffer[1] - examined.by_buffer[0]).abs());
    let widest = differences.max_by(f64::total_cmp)?;
    Some(Claim::new("rsc.fig7.small", Some(widest / 100.0), None))
}

fn larger_payloads(captures: Captures<'_>) -> Option<Claim> {
    let large = of_sixteen(captures).into_iter().filter(|(kb, _)| *kb > 4);
    let gains = large.map(|(_, examined)| examined.by_buffer[1] - examined.by_buffer[0]);
    Some(Claim::new("rsc.fig7.large", Some(least(gains)? / 100.0), None))
}

/// Returns the packets that a window of `packets` eliminates; 0 if it was not examined.
fn with_window(examined: &Examined, packets: u32) -> f64 {
    let place = WINDOWS.iter().position(|&window| window == packets);
    place.and_then(|place| examined.by_window.get(place)).copied().unwrap_or(0.0)
}

fn in_figure_8(captures: Captures<'_>) -> Vec<(usize, &Examined)> {
    of_sixteen(captures).into_iter().filter(|(kb, _)| FIGURE_8_KB.contains(kb)).collect()
}

fn sixteen_packets(captures: Captures<'_>) -> Option<Claim> {
    let shown = in_figure_8(captures).into_iter();
    let low = least(shown.map(|(_, examined)| with_window(examined, 16)))?;
    Some(Claim::new("rsc.fig8.sixteen", Some(low / 100.0), None))
}

fn from_16_to_32(captures: Captures<'_>) -> Option<Claim> {
    let shown = in_figure_8(captures);
    let gains: Vec<f64> = shown.iter().map(|(_, examined)| gain_of_32(examined)).collect();
    let (low, high) = (least(gains.iter().copied())?, gains.into_iter().fold(0.0, f64::max));
    let detail = format!("Up to {:.1} points.", high / 100.0);
    let claim = Claim::new("rsc.fig8.to-32", Some(low / 100.0), detail);
    Some(claim.because(|| why_so_little(captures, &shown)))
}

/// Returns the reason for a small gain: the distance from the ceiling, and the payloads that gain more.
fn why_so_little(captures: Captures<'_>, shown: &[(usize, &Examined)]) -> String {
    let left = |&(kb, examined): &(usize, &Examined)| {
        let room = ceiling(kb * 1_024, 8_192) - with_window(examined, 16);
        format!("{:.1} points at {kb} KB", room / 100.0)
    };
    let left: Vec<String> = shown.iter().map(left).collect();
    let mut why = format!(
        "With 16 packets, what PSH and the buffer allow is only {} away, because the segments of a \
         payload arrive close together.",
        left.join(", ")
    );
    let all = captures.0.iter().filter_map(|examined| Some((examined.condition?, examined)));
    let gains = all.map(|(what, examined)| (gain_of_32(examined), what, examined));
    if let Some((gain, what, examined)) = gains.max_by(|a, b| a.0.total_cmp(&b.0)) {
        why += &format!(
            " The more they are mixed with others', the more a longer window gains: most with \
             {what}, {:.1} points ({:.1} flows in a window of 20).",
            gain / 100.0,
            examined.interleaving.flows_per_window
        );
    }
    why
}

fn gain_of_32(examined: &Examined) -> f64 {
    with_window(examined, 32) - with_window(examined, 16)
}

fn beyond_32(captures: Captures<'_>) -> Option<Claim> {
    // Compared per packet of the window, because the second step is twice as long.
    let rate = |examined: &Examined| {
        let first = with_window(examined, 32) - with_window(examined, 16);
        let second = with_window(examined, 64) - with_window(examined, 32);
        second / 2.0 / first.max(1.0)
    };
    let rates = in_figure_8(captures).into_iter().map(|(_, examined)| rate(examined));
    Some(Claim::new("rsc.fig8.beyond-32", Some(rates.max_by(f64::total_cmp)?), None))
}

/// Payloads of the paper's figure 8.
const FIGURE_8_KB: [usize; 3] = [4, 8, 16];
