//! Figure 10, and the project's aims for a guest.

use rxo_console::numbers::ratio;

use super::super::aims::percent;
use super::Feed;
use super::guest::Cost;
use super::part::{Part, Parts};
use crate::claim::Claim;
use crate::figure::{Bracket, Figure, Series};

/// Draws guest and domain as one stack, by the paper's categories; `None` unless the first and the last of
/// the paper's feeds were measured.
pub(in super::super) fn figure_10(costs: &[Cost]) -> Option<Figure> {
    let shown: Vec<(&Cost, Parts)> = Feed::PAPERS
        .into_iter()
        .filter_map(|feed| {
            let cost = of(costs, feed)?;
            Some((cost, std::array::from_fn(|part| cost.guest[part] + cost.domain[part])))
        })
        .collect();
    let (first, last) = (shown.first()?, shown.last()?);
    if (first.0.feed, last.0.feed) != (Feed::Plain, Feed::Split) {
        return None;
    }
    let series = GROUPS.into_iter().map(|(name, group)| {
        let values = shown.iter().map(|(_, parts)| Some(sum(parts, group)));
        Series::new(name, values.collect()).stack()
    });
    let brackets = shown.iter().enumerate().map(|(place, (_, parts))| Bracket {
        place,
        to: sum(parts, &Part::PER_PACKET),
        name: "per packet",
    });
    let [before, after] = [first, last].map(|(_, parts)| sum(parts, &Part::PER_PACKET));
    let detail = format!("From {before:.0} to {after:.0} instructions a packet.");
    Some(Figure {
        number: "10 on a card",
        x: shown.iter().map(|(cost, _)| cost.feed.name().to_owned()).collect(),
        series: series.collect(),
        brackets: brackets.collect(),
        claims: vec![Claim::new("menon-card.fig10.per-packet", Some(ratio(before, after)), detail)],
        ..Figure::default()
    })
}

/// Groups of categories in figure 10, the per-packet part first. Eight is the number of colours.
const GROUPS: [(&str, &[Part]); 8] = [
    ("non-proto, buffer", &[Part::NonProto, Part::Buffer]),
    ("netback", &[Part::Netback]),
    ("netfront", &[Part::Netfront]),
    ("tcp rx, tx", &[Part::TcpRx, Part::TcpTx]),
    ("driver", &[Part::Driver]),
    ("aggr", &[Part::Aggr]),
    ("per-byte", &[Part::PerByte]),
    ("misc", &[Part::Misc]),
];

/// Returns the claims of the project's aims for a guest.
pub(in super::super) fn aims(costs: &[Cost]) -> Vec<Claim> {
    let of = |cost: fn(&Cost) -> f64| gain(costs, Feed::Split, cost).map(percent);
    vec![
        Claim::new("menon-card.aim.guest", of(guest), None),
        Claim::new("menon-card.aim.guest-and-domain", of(both), None),
    ]
}

const fn guest(cost: &Cost) -> f64 {
    cost.guest_per_byte
}

fn both(cost: &Cost) -> f64 {
    cost.guest_per_byte + cost.domain_per_byte
}

/// Returns the gain in data received per instruction, as a multiple of the feed with single frames.
fn gain(costs: &[Cost], feed: Feed, cost: fn(&Cost) -> f64) -> Option<f64> {
    Some(ratio(cost(of(costs, Feed::Plain)?), cost(of(costs, feed)?)))
}

fn of(costs: &[Cost], feed: Feed) -> Option<&Cost> {
    costs.iter().find(|cost| cost.feed == feed)
}

fn sum(parts: &Parts, of: &[Part]) -> f64 {
    of.iter().map(|&part| parts[part as usize]).sum()
}

#[cfg(test)]
mod tests {
    use super::super::guest::tests::cost;
    use super::*;

    fn costs(split: f64) -> [Cost; 3] {
        [
            cost(Feed::Plain, 1_000.0, 100.0),
            cost(Feed::Aggregates, 300.0, 100.0),
            cost(Feed::Split, split, 100.0),
        ]
    }

    #[test]
    fn the_papers_gain_is_asked_of_the_guest_and_of_both() {
        let holds = |split| {
            let aims = aims(&costs(split));
            aims.iter().map(Claim::holds).collect::<Vec<_>>()
        };
        assert_eq!(holds(100.0), [Some(true), Some(true)]);
        assert_eq!(holds(530.0), [Some(true), Some(false)]);
        assert_eq!(holds(600.0), [Some(false), Some(false)]);
        assert!(aims(&[]).iter().all(|aim| aim.holds().is_none()));
    }

    #[test]
    fn the_figure_has_both_halves_and_brackets_what_is_per_packet() {
        let figure = figure_10(&costs(100.0)).unwrap();
        assert_eq!(figure.series[0].values[0], Some(2_200.0), "two parts of guest and domain");
        let all = figure.series.iter().filter_map(|series| series.values[0]).sum::<f64>();
        assert!((all - 10.0 * 1_100.0).abs() < 1e-6, "every part is in a group: {all}");
        assert!((figure.brackets[2].to - 6.0 * 200.0).abs() < 1e-6, "{:?}", figure.brackets);
        assert_eq!(figure.verdicts(), [Some(true)], "{figure:?}");
        assert_eq!(figure_10(&costs(300.0)).unwrap().verdicts(), [Some(false)]);
        assert!(figure_10(&costs(100.0)[1..]).is_none(), "nothing to compare with");
    }

    #[test]
    fn a_run_that_ended_before_the_last_feed_has_no_figure() {
        assert!(
            figure_10(&costs(100.0)[..2]).is_none(),
            "aggregates alone are not what the paper compares"
        );
    }
}
