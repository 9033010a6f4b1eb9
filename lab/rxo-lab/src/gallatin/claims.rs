//! The claims: aggregation against none, for each receiver.

use rxo_console::numbers::ratio;
use rxo_demo::sending::{Sample, Way};

use super::peer::Peer;
use super::{Case, Cells, us_per_kb};
use crate::claim::{Claim, Ours};

/// Returns the claims of a chart.
pub(super) fn of(chart: &'static str, cells: &Cells<Case, Sample>) -> Vec<Claim> {
    match chart {
        "cost" => vec![
            saving("gallatin.table1.saving", cells, Peer::Rarely),
            saving("gallatin.table2.saving", cells, Peer::EveryEight),
            more_with_more_acks(cells),
        ],
        "rate" => vec![
            same_rate("gallatin.table1.rate", cells, Peer::Rarely),
            same_rate("gallatin.table2.rate", cells, Peer::EveryEight),
        ],
        _ => Vec::new(),
    }
}

/// Returns the share of the sender's processor time per byte that aggregation saves, in percent.
fn saved(cells: &Cells<Case, Sample>, peer: Peer) -> Option<f64> {
    let of = |way| cells.median((peer, way), us_per_kb);
    Some(100.0 * (1.0 - ratio(of(Way::AckAggregate)?, of(Way::NoAggregation)?)))
}

fn saving(id: &str, cells: &Cells<Case, Sample>, peer: Peer) -> Claim {
    let rate = cells.median((peer, Way::NoAggregation), Sample::acks_per_segment);
    let detail = rate.map(|rate| format!("The receiver sends {rate:.3} ACKs for a segment."));
    Claim::new(id, saved(cells, peer), detail)
}

/// Compares the saving with rare ACKs, if there is any, to that with an ACK for each segment.
fn more_with_more_acks(cells: &Cells<Case, Sample>) -> Claim {
    let savings = saved(cells, Peer::Rarely).zip(saved(cells, Peer::EachSegment));
    let detail = savings.map(|(few, many)| format!("{many:.0} % and {few:.0} % are saved."));
    Claim::new("gallatin.more-acks", savings.map(|(few, many)| many - few.max(0.0)), detail)
}

/// Compares the rates. If the ranges of the rounds overlap, the medians decide.
fn same_rate(id: &str, cells: &Cells<Case, Sample>, peer: Peer) -> Claim {
    let of = |way| cells.spread((peer, way), |sample| sample.gbit_per_s);
    let both = of(Way::NoAggregation).zip(of(Way::AckAggregate));
    let ours = both.map(|(without, with)| {
        let percent = |one: f64, other: f64| 100.0 * ratio(one, other);
        let (low, high) = (percent(with.min, without.max), percent(with.max, without.min));
        let value = percent(with.median, without.median);
        let overlaps = low <= 100.0 && high >= 100.0;
        if overlaps { value.into() } else { Ours::between(value, (low, high), 1) }
    });
    let detail = both.map(|(without, with)| {
        format!("{:.2} Gbit/s with aggregation, {:.2} without.", with.median, without.median)
    });
    Claim::new(id, ours, detail)
}

#[cfg(test)]
mod tests {
    use rxo_demo::losses::Losses;
    use rxo_demo::sending::HostCpu;

    use super::*;
    use crate::claim::Status::{self, *};

    fn sample((gbit_per_s, us_per_kb): (f64, f64)) -> Sample {
        let sender = us_per_kb / 1.024;
        Sample {
            gbit_per_s,
            cpu: HostCpu { sender, ..HostCpu::default() },
            both_cpu_s_per_gb: 3.0 * sender,
            segments: 2_000,
            acks: 1_000,
            ack_deliveries: 100,
            losses: Losses::default(),
            hash_ok: true,
        }
    }

    /// Returns the verdicts for the rates and costs of each receiver, without aggregation and with it.
    fn verdicts(peers: [[(f64, f64); 2]; 3]) -> Vec<Status> {
        let ways = [Way::NoAggregation, Way::AckAggregate];
        let cell = |peer, way, one| ((peer, way), vec![sample(one)]);
        let of = |(peer, [a, b]): (Peer, [(f64, f64); 2])| {
            [cell(peer, ways[0], a), cell(peer, ways[1], b)]
        };
        let cells = Cells::of(Peer::ALL.into_iter().zip(peers).flat_map(of).collect());
        ["cost", "rate"].iter().flat_map(|it| self::of(it, &cells)).map(|it| it.status()).collect()
    }

    #[test]
    fn what_the_paper_found_is_reproduced_when_it_is_so_here() {
        let found = verdicts([
            [(9.4, 0.349), (9.4, 0.290)],
            [(8.5, 0.404), (9.2, 0.250)],
            [(1.5, 5.0), (2.5, 2.5)],
        ]);
        assert_eq!(found, [Exceeds, Exceeds, Reproduced, Reproduced, Exceeds]);
    }

    #[test]
    fn what_is_not_so_here_is_weaker_or_contradicted() {
        let found = verdicts([
            [(9.4, 1.0), (9.4, 1.1)],
            [(9.0, 1.0), (4.0, 0.9)],
            [(1.5, 5.0), (1.5, 5.1)],
        ]);
        assert_eq!(found, [Contradicted, Weaker, Contradicted, Reproduced, Contradicted]);
        let nothing = Cells::of(Vec::new());
        assert!(self::of("cost", &nothing).iter().all(|it| it.status() == NotRepeated));
    }
}
