//! Figures 4 to 8: the share of packets that coalescing eliminates, over payload, connections, entries, buffer
//! and window.

use super::examine::{BUFFERS_KB, Condition, ENTRIES, Examined, WINDOWS};
use crate::claim::Claim;
use crate::figure::{Figure, Guide, Series};

/// Returns the figures of the captures, without figures that would have no values.
pub(super) fn figures(examined: &[&Examined]) -> Vec<Figure> {
    let captures = Captures(examined);
    let all = [
        Figure { claims: claims_of_4(captures), ..by_payload(captures, "4", &FEW, &GUIDES_OF_4) },
        Figure { claims: half(captures), ..by_payload(captures, "5", &MANY, &[MORE_THAN_HALF]) },
        by_variant(captures, "6", ENTRIES.map(|it| it.to_string()).to_vec(), |it| &it.by_entries),
        by_variant(captures, "7", BUFFERS_KB.map(kb).to_vec(), |it| &it.by_buffer),
        by_variant(captures, "8", WINDOWS.map(|it| it.to_string()).to_vec(), |it| &it.by_window),
    ];
    let has_values = |figure: &Figure| !figure.series.is_empty();
    all.into_iter().filter(has_values).collect()
}

/// The captures, with lookups by condition.
#[derive(Clone, Copy)]
struct Captures<'a>(&'a [&'a Examined]);

impl<'a> Captures<'a> {
    fn of(self, connections: usize, payload_kb: usize) -> Option<&'a Examined> {
        let condition = Some(Condition { connections, payload_kb });
        self.0.iter().copied().find(|examined| examined.condition == condition)
    }

    /// Returns the payloads of the lab's captures in KB, ascending.
    fn payloads_kb(self) -> Vec<usize> {
        let conditions = self.0.iter().filter_map(|examined| examined.condition);
        let mut payloads: Vec<usize> = conditions.map(|condition| condition.payload_kb).collect();
        payloads.sort_unstable();
        payloads.dedup();
        payloads
    }

    /// Returns the numbers among `wanted` for which a capture was made.
    fn connections(self, wanted: &[usize]) -> Vec<usize> {
        let is_of = |count, it: &Examined| it.condition.is_some_and(|it| it.connections == count);
        let is_there = |count: &usize| self.0.iter().any(|it| is_of(*count, it));
        wanted.iter().copied().filter(is_there).collect()
    }

    /// Returns the packets of 10,000 that the paper's card eliminates at a payload, for each of the connections
    /// in `wanted` that was captured.
    fn eliminated(self, wanted: &[usize], payload_kb: usize) -> Vec<f64> {
        wanted.iter().filter_map(|&count| Some(self.of(count, payload_kb)?.eliminated)).collect()
    }

    /// Returns the captures with 16 connections and payloads that `is_wanted`.
    fn of_sixteen(self, is_wanted: impl Fn(usize) -> bool) -> Vec<&'a Examined> {
        let payloads = self.payloads_kb().into_iter().filter(|kb| is_wanted(*kb));
        payloads.filter_map(|kb| self.of(16, kb)).collect()
    }
}

fn kb(kb: impl std::fmt::Display) -> String {
    format!("{kb} KB")
}

fn least(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().min_by(f64::total_cmp)
}

fn most(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().max_by(f64::total_cmp)
}

/// Makes a claim about packets of 10,000, in percent of all packets.
fn percent(id: &str, of_10_000: Option<f64>) -> Claim {
    Claim::new(id, of_10_000.map(|value| value / 100.0), None)
}

/// Draws figure 4 or 5: packets eliminated over the payload, for numbers of connections.
fn by_payload(
    captures: Captures<'_>,
    number: &'static str,
    wanted: &[usize],
    guides: &[Guide],
) -> Figure {
    let payloads = captures.payloads_kb();
    let line = |connections: usize| {
        let of = |kb: &usize| Some(captures.of(connections, *kb)?.eliminated);
        Series::new(format!("{connections} connections"), payloads.iter().map(of).collect())
    };
    let mut series: Vec<Series> = captures.connections(wanted).into_iter().map(line).collect();
    if !series.is_empty() {
        let most = payloads.iter().map(|kb| Some(ceiling(kb * 1_024).round())).collect();
        series.push(Series::reference("most possible (PSH, buffer)", most));
    }
    let x = payloads.iter().map(kb).collect();
    Figure { number, x, series, guides: guides.to_vec(), ..Figure::default() }
}

const GUIDES_OF_4: [Guide; 2] = [
    Guide { value: 5_000.0, meaning: "the paper: from about 50 %" },
    Guide { value: 8_000.0, meaning: "the paper: to 80 %" },
];
const MORE_THAN_HALF: Guide = Guide { value: 5_000.0, meaning: "the paper: more than 50 %" };

fn claims_of_4(captures: Captures<'_>) -> Vec<Claim> {
    let payloads = captures.payloads_kb();
    let at = |kb: usize| captures.eliminated(&FEW, kb);
    let all = || payloads.iter().flat_map(|kb| at(*kb));
    let spread = |kb: &usize| Some(most(at(*kb))? - least(at(*kb))?);
    let widest = most(payloads.iter().filter_map(spread));
    let mean = |kb: usize| {
        let all = at(kb);
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    };
    let larger = most([16, 32, 64].into_iter().filter_map(mean));
    let [fewer, sixteen] = [&FEW[..2], &FEW[2..]].map(|few| least(captures.eliminated(few, 8)));
    let less = |more: Option<f64>, fewer| more.zip(fewer).map(|(more, fewer)| more - fewer);
    vec![
        percent("rsc.fig4.range.low", least(all())),
        percent("rsc.fig4.range.high", most(all())),
        percent("rsc.fig4.variation", widest.filter(|_| captures.connections(&FEW).len() > 1)),
        percent("rsc.fig4.sixteen", less(fewer, sixteen)),
        percent("rsc.fig4.beyond-8k", less(mean(8), larger)),
    ]
}

/// Makes the claim of figure 5. Two segments with PSH on the second can lose at most half of the packets, so
/// such payloads are left out.
fn half(captures: Captures<'_>) -> Vec<Claim> {
    let payloads = captures.payloads_kb().into_iter().filter(|kb| ceiling(kb * 1_024) > 5_000.0);
    let low = least(payloads.flat_map(|kb| captures.eliminated(&MANY, kb)));
    let (claim, captured) = (percent("rsc.fig5.half", low), captures.connections(&MANY));
    // One number of connections that is not captured leaves the claim open, but not one that fails.
    let is_decided = captured.len() == MANY.len() || low.is_none_or(|low| low <= 5_000.0);
    let open = || format!("Only {captured:?} of {MANY:?} connections were captured.");
    vec![if is_decided { claim } else { claim.undecided(open()) }]
}

/// Draws one of the figures 6 to 8: variants of the paper's card for 16 connections, a line for each payload and
/// for each capture that the user brought.
fn by_variant(
    captures: Captures<'_>,
    number: &'static str,
    x: Vec<String>,
    values: fn(&Examined) -> &Vec<f64>,
) -> Figure {
    let is_drawn = |kb| number != "8" || FIGURE_8_KB.contains(&kb);
    let lab = captures.of_sixteen(is_drawn);
    let brought = captures.0.iter().copied().filter(|examined| examined.condition.is_none());
    let line = |examined: &Examined| {
        let name = examined.condition.map_or(examined.name.clone(), |it| kb(it.payload_kb));
        Series::new(name, values(examined).iter().copied().map(Some).collect())
    };
    let (claims, guides) = match number {
        _ if lab.is_empty() => (Vec::new(), Vec::new()),
        "6" => (vec![three_entries(&lab)], Vec::new()),
        "7" => (buffers(captures), Vec::new()),
        _ => (windows(&lab), vec![WITH_SIXTEEN]),
    };
    let series = lab.iter().copied().chain(brought).map(line).collect();
    Figure { number, x, series, claims, guides, ..Figure::default() }
}

const WITH_SIXTEEN: Guide = Guide { value: 5_000.0, meaning: "the paper: more than 50 % with 16" };

fn three_entries(captures: &[&Examined]) -> Claim {
    let share = |it: &&Examined| Some(it.by_entries[2] / most(it.by_entries.clone())?);
    let shares = captures.iter().filter_map(share).filter(|share| share.is_finite());
    Claim::new("rsc.fig6.three", least(shares), None)
}

/// Makes the claims about buffers of 4 and of 8 KB.
fn buffers(captures: Captures<'_>) -> Vec<Claim> {
    let gains = |is_wanted: fn(usize) -> bool| {
        let captures = captures.of_sixteen(is_wanted).into_iter();
        captures.map(|it| it.by_buffer[1] - it.by_buffer[0])
    };
    vec![
        percent("rsc.fig7.small", most(gains(|kb| kb <= 4).map(f64::abs))),
        percent("rsc.fig7.large", least(gains(|kb| kb > 4))),
    ]
}

fn windows(captures: &[&Examined]) -> Vec<Claim> {
    let with = |it: &Examined, packets: u32| {
        let place = WINDOWS.iter().position(|&window| window == packets);
        place.map_or(0.0, |place| it.by_window[place])
    };
    let gain = |it: &Examined, from, to| with(it, to) - with(it, from);
    // Compared per packet of the window, because the second step is twice as long.
    let rate = |it: &Examined| gain(it, 32, 64) / 2.0 / gain(it, 16, 32).max(1.0);
    let over = |of: &dyn Fn(&Examined) -> f64| captures.iter().map(|it| of(it)).collect::<Vec<_>>();
    vec![
        percent("rsc.fig8.sixteen", least(over(&|it| with(it, 16)))),
        percent("rsc.fig8.to-32", least(over(&|it| gain(it, 16, 32)))),
        Claim::new("rsc.fig8.beyond-32", most(over(&rate)), None),
    ]
}

/// Returns the most packets of 10,000 that payloads and buffers of 8 KB permit to eliminate: PSH at the end of a
/// payload ends an aggregate, and a segment is never split over two buffers.
fn ceiling(payload_bytes: usize) -> f64 {
    let (mut buffers, mut room, mut left) = (0_usize, 0, payload_bytes);
    while left > 0 {
        let bytes = left.min(SEGMENT_BYTES);
        if bytes > room {
            buffers += 1;
            room = BUFFER_BYTES;
        }
        room -= bytes;
        left -= bytes;
    }
    10_000.0 * (1.0 - buffers as f64 / payload_bytes.div_ceil(SEGMENT_BYTES) as f64)
}

/// Payload of a full segment without timestamps on an Ethernet of 1,500 bytes, as in the paper.
const SEGMENT_BYTES: usize = 1_460;
const BUFFER_BYTES: usize = 8_192;
/// Numbers of connections in figure 4.
const FEW: [usize; 3] = [4, 8, 16];
/// Numbers of connections in figure 5.
const MANY: [usize; 4] = [16, 30, 60, 90];
/// Payloads of the paper's figure 8.
const FIGURE_8_KB: [usize; 3] = [4, 8, 16];

#[cfg(test)]
mod tests;
