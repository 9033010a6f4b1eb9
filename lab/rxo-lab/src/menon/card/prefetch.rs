//! Figure 1 as a simulation: the cost of a packet for different prefetchers.
//!
//! Callgrind simulates two levels of cache, and estimates cycles from the misses. Nothing is timed, and a
//! simulated prefetcher is never late. The simulation does not see the card's writes, so its last cache is
//! smaller than the ring; a frame is then never cached when the host reads it, as after DMA.

use serde::Serialize;

use super::category::Category;
use super::network::Counts;
use crate::claim::Claim;
use crate::figure::{Figure, Series};

/// The prefetching of the simulated processor (section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Prefetch {
    None,
    /// Prefetches the neighbour of each cache line.
    Adjacent,
    /// Prefetches the neighbour of each line, and streams of lines.
    Full,
}

impl Prefetch {
    pub(super) const ALL: [Self; 3] = [Self::None, Self::Adjacent, Self::Full];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Adjacent => "adjacent lines",
            Self::Full => "adjacent lines, streams",
        }
    }

    /// Returns callgrind's options. A line with its neighbour is simulated as a line of twice the size.
    pub(super) const fn options(self) -> &'static [&'static str] {
        match self {
            Self::None => &[SIMULATED, FIRST, "--LL=262144,8,64"],
            Self::Adjacent => &[SIMULATED, FIRST, "--LL=262144,8,128"],
            Self::Full => &[SIMULATED, FIRST, "--LL=262144,8,128", "--simulate-hwpref=yes"],
        }
    }
}

/// Cost of a packet on the simulated processor.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Simulated {
    pub(super) prefetch: Prefetch,
    /// Estimated cycles of per-byte operations, per packet.
    pub(super) per_byte: f64,
    pub(super) per_packet: f64,
    pub(super) misc: f64,
}

impl Simulated {
    pub(super) fn of(prefetch: Prefetch, cycles: &Counts) -> Self {
        let [per_byte, misc] =
            [Category::PerByte, Category::Misc].map(|category| cycles[category as usize]);
        let per_packet = cycles.iter().sum::<f64>() - per_byte - misc;
        Self { prefetch, per_byte, per_packet, misc }
    }

    /// Returns a progress line about this simulation.
    pub(super) fn line(&self) -> String {
        format!("{:>6.0} cycles/packet", self.per_byte + self.per_packet + self.misc)
    }

    fn share(&self, cycles: f64) -> f64 {
        100.0 * cycles / (self.per_byte + self.per_packet + self.misc)
    }
}

/// Draws figure 1; `None` unless all processors were simulated.
pub(super) fn figure_1(all: &[Simulated]) -> Option<Figure> {
    let [none, _, full] = all else { return None };
    let part = |name: &str, of: fn(&Simulated) -> f64| {
        let shares = all.iter().map(|one| Some(one.share(of(one))));
        Series::new(name, shares.collect()).stack()
    };
    Some(Figure {
        number: "1 simulated",
        x: all.iter().map(|one| one.prefetch.name().to_owned()).collect(),
        series: vec![
            part("per-packet", |one| one.per_packet),
            part("per-byte", |one| one.per_byte),
            part("misc", |one| one.misc),
        ],
        claims: claims(none, full),
        ..Figure::default()
    })
}

/// Compares no prefetching with full prefetching: the lead of the largest part, and the fall of the per-byte
/// share.
fn claims(none: &Simulated, full: &Simulated) -> Vec<Claim> {
    let bytes = [none, full].map(|one| one.share(one.per_byte));
    let packets = [none, full].map(|one| one.share(one.per_packet));
    let ahead = (bytes[0] - packets[0]).min(packets[1] - bytes[1]);
    let detail = format!(
        "Per byte {:.1} % and per packet {:.1} % without prefetching, {:.1} % and {:.1} % with all of it.",
        bytes[0], packets[0], bytes[1], packets[1]
    );
    vec![
        Claim::new("menon-card.fig1.crossover", Some(ahead), detail),
        Claim::new("menon-card.fig1.fall", Some(bytes[0] - bytes[1]), None),
    ]
}

const SIMULATED: &str = "--cache-sim=yes";
/// Callgrind's option for the first-level data cache of the paper's processor.
const FIRST: &str = "--D1=16384,8,64";

#[cfg(test)]
mod tests {
    use super::*;

    fn simulated(per_byte: [f64; 3]) -> Vec<Simulated> {
        let of = |(prefetch, per_byte)| {
            let mut cycles = [10.0; Category::ALL.len()];
            cycles[Category::PerByte as usize] = per_byte;
            // Original sends no templates.
            cycles[Category::Expansion as usize] = 0.0;
            Simulated::of(prefetch, &cycles)
        };
        Prefetch::ALL.into_iter().zip(per_byte).map(of).collect()
    }

    #[test]
    fn what_is_neither_copied_nor_misc_is_per_packet() {
        let one = simulated([40.0, 20.0, 5.0])[0];
        assert_eq!((one.per_byte, one.per_packet, one.misc), (40.0, 50.0, 10.0));
        assert!((one.share(one.per_byte) - 40.0).abs() < 1e-9);
    }

    #[test]
    fn the_shape_holds_if_the_largest_part_changes() {
        let holds = |costs| figure_1(&simulated(costs)).unwrap().verdicts()[0];
        assert_eq!(holds([60.0, 55.0, 40.0]), Some(true));
        assert_eq!(holds([70.0, 65.0, 60.0]), Some(false), "bytes stay the largest part");
        assert_eq!(holds([40.0, 30.0, 20.0]), Some(false), "packets were it before");
        assert_eq!(holds([60.0, 55.0, 49.0]), Some(false), "one point is a tie");
        assert_eq!(holds([51.0, 45.0, 40.0]), Some(false), "and so it is before");
    }

    #[test]
    fn how_far_the_per_byte_part_falls_is_a_statement_of_its_own() {
        let said = |costs| figure_1(&simulated(costs)).unwrap().claims[1].clone();
        let little = said([60.0, 55.0, 40.0]);
        assert_eq!(little.holds(), Some(false));
        assert!(little.line().contains(" 10 points,"), "{}", little.line());
        assert_eq!(said([60.0, 30.0, 8.0]).holds(), Some(true), "50 % to 11.8 %");
    }

    #[test]
    fn without_a_simulation_there_is_no_figure() {
        assert!(figure_1(&[]).is_none());
    }

    #[test]
    fn a_run_that_ended_before_the_last_processor_has_no_figure() {
        assert!(figure_1(&simulated([60.0, 55.0, 40.0])[..2]).is_none());
    }
}
