//! Figures 4 and 5: packets eliminated over the payload, for several numbers of connections.

use super::super::ceiling::ceiling;
use super::{Captures, least, most, percent};
use crate::claim::Claim;
use crate::figure::{Figure, Guide, Series};

pub(super) fn figure_4(captures: Captures<'_>) -> Figure {
    let claims = [variation(captures), eight_kb(captures), beyond_eight_kb(captures)];
    let guides = vec![
        Guide { value: 5_000.0, meaning: "the paper: from about 50 %" },
        Guide { value: 8_000.0, meaning: "the paper: to 80 %" },
    ];
    Figure {
        guides,
        claims: range_of_4(captures).into_iter().chain(claims.into_iter().flatten()).collect(),
        ..by_payload(captures, "4", &FEW)
    }
}

pub(super) fn figure_5(captures: Captures<'_>) -> Figure {
    let guides = vec![Guide { value: 5_000.0, meaning: "the paper: more than 50 %" }];
    let claims = more_than_half(captures).into_iter().collect();
    Figure { guides, claims, ..by_payload(captures, "5", &MANY) }
}

fn by_payload(captures: Captures<'_>, number: &'static str, wanted: &[usize]) -> Figure {
    let payloads = captures.payloads_kb();
    let line = |connections: usize| {
        let values = payloads.iter().map(|&kb| captures.eliminated(connections, kb));
        Series::new(format!("{connections} connections"), values.collect())
    };
    let mut series: Vec<Series> = captures.connections(wanted).into_iter().map(line).collect();
    if !series.is_empty() {
        let most = payloads.iter().map(|kb| Some(most_possible(*kb))).collect();
        series.push(Series::reference("most possible (PSH, buffer)", most));
    }
    Figure {
        number,
        x: payloads.iter().map(|kb| format!("{kb} KB")).collect(),
        series,
        ..Figure::default()
    }
}

fn values(captures: Captures<'_>, wanted: &[usize]) -> Vec<(usize, f64)> {
    let connections = captures.connections(wanted);
    let payloads = captures.payloads_kb().into_iter();
    payloads
        .flat_map(|kb| connections.iter().map(move |&count| (kb, count)))
        .filter_map(|(kb, count)| captures.eliminated(count, kb).map(|value| (kb, value)))
        .collect()
}

fn range_of_4(captures: Captures<'_>) -> Vec<Claim> {
    let all = values(captures, &FEW);
    let ends = [least(all.iter().map(|v| v.1)), most(all.iter().map(|v| v.1))];
    let ids = ["rsc.fig4.range.low", "rsc.fig4.range.high"];
    let claim = |(id, end): (&str, Option<f64>)| Some(Claim::new(id, Some(end? / 100.0), None));
    ids.into_iter().zip(ends).filter_map(claim).collect()
}

fn variation(captures: Captures<'_>) -> Option<Claim> {
    let counts = captures.connections(&FEW);
    let spread = |kb: usize| {
        let at = || counts.iter().filter_map(|&count| captures.eliminated(count, kb));
        Some((kb, most(at())? - least(at())?))
    };
    let spreads = captures.payloads_kb().into_iter().filter_map(spread);
    let (kb, widest) = spreads.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let ours = (counts.len() > 1).then_some(widest / 100.0);
    Some(Claim::new("rsc.fig4.variation", ours, format!("The widest is at {kb} KB.")))
}

fn eight_kb(captures: Captures<'_>) -> Option<Claim> {
    let sixteen = captures.of(16, 8)?;
    let fewer = [4, 8].into_iter().filter_map(|count| captures.eliminated(count, 8));
    let fewest = least(fewer)?;
    let detail = format!(
        "{} with 16, at least {} with fewer.",
        percent(sixteen.eliminated),
        percent(fewest)
    );
    let mixed = sixteen.interleaving;
    let less = (fewest - sixteen.eliminated) / 100.0;
    Some(Claim::new("rsc.fig4.sixteen", Some(less), detail).because(|| {
        format!(
            "What separates a payload's last segment from its others is the end of a window, and that is as likely with 4 \
             connections as with 16 as long as as few of them send at once: {:.1} flows share a window of 20 packets here, \
             {:.1} segments of one follow each other.",
            mixed.flows_per_window, mixed.segments_per_run
        )
    }))
}

fn beyond_eight_kb(captures: Captures<'_>) -> Option<Claim> {
    let counts = captures.connections(&FEW);
    let at = |kb: usize| counts.iter().filter_map(move |&count| captures.eliminated(count, kb));
    let mean = |kb: usize| {
        let (sum, count) = at(kb).fold((0.0, 0.0), |(sum, count), v| (sum + v, count + 1.0));
        (count > 0.0).then_some(sum / count)
    };
    let eight = mean(8)?;
    let larger = most([16, 32, 64].into_iter().filter_map(mean))?;
    let detail = format!(
        "{} at 8 KB, at most {} above (means of all connections).",
        percent(eight),
        percent(larger)
    );
    Some(Claim::new("rsc.fig4.beyond-8k", Some((eight - larger) / 100.0), detail))
}

fn more_than_half(captures: Captures<'_>) -> Option<Claim> {
    let all = values(captures, &MANY);
    // Two segments with PSH on the second can lose at most half of the packets.
    let (kb, low) = all
        .into_iter()
        .filter(|(kb, _)| most_possible(*kb) > 5_000.0)
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let captured = captures.connections(&MANY);
    let detail = format!("The least is at {kb} KB, with {captured:?} connections.");
    let claim = Claim::new("rsc.fig5.half", Some(low / 100.0), detail);
    // One number of connections that is not captured leaves the claim open, but not one that fails.
    let is_decided = captured.len() == MANY.len() || low <= 5_000.0;
    Some(match is_decided {
        true => claim,
        false => {
            claim.undecided(format!("Only {captured:?} of {MANY:?} connections were captured."))
        }
    })
}

fn most_possible(payload_kb: usize) -> f64 {
    ceiling(payload_kb * 1_024, 8_192).round()
}

/// Numbers of connections in figure 4.
const FEW: [usize; 3] = [4, 8, 16];
/// Numbers of connections in figure 5.
const MANY: [usize; 4] = [16, 30, 60, 90];
