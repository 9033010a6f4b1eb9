//! Summarizes several measurements of one host: medians with their ranges.

use rxo_console::numbers::ratio;
use rxo_demo::stats::Spread;
use serde::Serialize;
use serde_json::{Map, Value};

use super::case::{Application, Case, Traffic};
use super::category::Category;
use super::network::{self, Sample};
use crate::card::Expansion;
use crate::menon::receive::stack::Stack;

/// The results of one receiving host.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) case: Case,
    /// Instructions of the receiver per frame from the card.
    pub(super) per_packet: Spread,
    /// Instructions of the receiver per byte of payload.
    pub(super) per_byte: Spread,
    /// Payload received per second of the receiver's processor time, in Gbit.
    pub(super) scaled_gbit_per_s: Spread,
    /// Payload rate in real time, in Gbit/s.
    pub(super) gbit_per_s: Spread,
    pub(super) packets_per_delivery: Spread,
    pub(super) acks_per_packet: Spread,
    /// Packets handed to the card per received frame. A template is one packet.
    pub(super) handed_over_per_packet: Spread,
    /// Idle turns per frame while instructions were counted.
    pub(super) pauses_per_packet: Spread,
    /// Instructions per frame, by category.
    #[serde(serialize_with = "by_name")]
    pub(super) breakdown: [f64; Category::ALL.len()],
    /// Retransmitted segments, summed over all rounds.
    pub(super) retransmissions: u64,
    /// Segments retransmitted while instructions were counted, in percent of the packets. Their instructions
    /// are counted too.
    pub(super) sent_again_percent: Spread,
}

impl Row {
    /// Makes the row of `case`; `None` if there is no sample.
    pub(super) fn of(case: Case, samples: &[Sample]) -> Option<Self> {
        let spread = |value: &dyn Fn(&Sample) -> f64| Spread::over(samples, value);
        let counted = |value: fn(&Sample) -> u64| {
            spread(&move |one| ratio(value(one) as f64, one.counted.packets as f64))
        };
        let category = |category: Category| {
            let of =
                |one: &Sample| network::ratio(one.counts[category as usize], one.counted.packets);
            spread(&of).map_or(0.0, |spread| spread.median)
        };
        let rate = |one: &Sample| ratio(one.timed.bytes as f64 * 8.0 / 1e9, one.timed.seconds);
        let per_delivery =
            |one: &Sample| network::ratio(one.counted.packets as f64, one.counted.deliveries);
        Some(Self {
            case,
            per_packet: spread(&Sample::per_packet)?,
            per_byte: spread(&Sample::per_byte)?,
            scaled_gbit_per_s: spread(&Sample::scaled_gbit_per_s)?,
            gbit_per_s: spread(&rate)?,
            packets_per_delivery: spread(&per_delivery)?,
            acks_per_packet: counted(|one| one.counted.acks)?,
            handed_over_per_packet: counted(|one| one.counted.handed_over)?,
            pauses_per_packet: counted(|one| one.counted.pauses)?,
            breakdown: Category::ALL.map(category),
            retransmissions: samples.iter().map(|one| one.retransmissions).sum(),
            sent_again_percent: spread(&Sample::sent_again_percent)?,
        })
    }
}

impl Row {
    /// Returns the receiver's instructions for expanding templates, per ACK.
    pub(super) fn expansion_per_ack(&self) -> f64 {
        ratio(self.breakdown[Category::Expansion as usize], self.acks_per_packet.median)
    }
}

fn by_name<S: serde::Serializer>(
    breakdown: &[f64; Category::ALL.len()],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let named = Category::ALL.iter().zip(breakdown);
    named
        .map(|(category, &count)| (category.name().to_owned(), Value::from(count)))
        .collect::<Map<_, _>>()
        .serialize(serializer)
}

/// All measured rows, with lookups by case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'r>(pub(super) &'r [Row]);

/// The gain of one host over another, as a factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gain {
    /// Factor in payload received per instruction.
    pub(super) instructions: f64,
    /// Factor in payload received per second of processor time.
    pub(super) time: f64,
}

impl<'r> Rows<'r> {
    pub(super) fn of(self, case: Case) -> Option<&'r Row> {
        self.0.iter().find(|row| row.case == case)
    }

    /// Returns the gain of `case` over Original in the same configuration; `None` unless both were measured.
    pub(super) fn gain(self, case: Case) -> Option<Gain> {
        self.gain_over(case, case.original())
    }

    pub(super) fn gain_over(self, case: Case, original: Case) -> Option<Gain> {
        let (row, original) = (self.of(case)?, self.of(original)?);
        Some(Gain {
            instructions: ratio(original.per_byte.median, row.per_byte.median),
            time: ratio(row.scaled_gbit_per_s.median, original.scaled_gbit_per_s.median),
        })
    }

    /// Returns the limits measured on one processor, ascending, with their rows.
    pub(super) fn limits(self) -> Vec<(u16, &'r Row)> {
        let of = |row: &'r Row| {
            let stack = row.case.stack;
            let is_it = row.case == Case::one_processor(stack) && stack.ack_offload;
            stack.aggregation_limit.filter(|_| is_it).map(|limit| (limit, row))
        };
        let mut all: Vec<_> = self.0.iter().filter_map(of).collect();
        all.sort_by_key(|(limit, _)| *limit);
        all
    }

    /// Returns the numbers of connections that were measured with both optimizations and with none, ascending.
    pub(super) fn connections(self) -> Vec<usize> {
        let is_both = |row: &&Row| {
            let case = row.case;
            case.application == Application::Worker
                && case.traffic == Traffic::Bulk
                && case.stack == Stack::OPTIMIZED
                && case.expansion == Expansion::Host
                && self.gain(case).is_some()
        };
        let mut all: Vec<usize> =
            self.0.iter().filter(is_both).map(|row| row.case.connections).collect();
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::receiver::Measured;
    use super::*;

    /// Makes a sample with `instructions` and `ns` nanoseconds for each of 1,000 packets.
    pub(in super::super) fn sample(instructions: f64, ns: f64) -> Sample {
        let measured = Measured {
            bytes: 1_448_000,
            packets: 1_000,
            deliveries: 100,
            handed_over: 50,
            acks: 500,
            cpu_s: ns / 1e6,
            seconds: 1.0,
            pauses: 5,
        };
        let share = instructions * 1_000.0 / Category::ALL.len() as f64;
        let counts = [share; Category::ALL.len()];
        Sample {
            timed: measured,
            counted: measured,
            counts,
            retransmissions: 1,
            counted_retransmissions: 1,
        }
    }

    pub(in super::super) fn row(case: Case, instructions: f64, ns: f64) -> Row {
        Row::of(case, &[sample(instructions, ns)]).unwrap()
    }

    #[test]
    fn a_row_says_what_a_packet_costs() {
        let case = Case::one_processor(Stack::ORIGINAL);
        let samples = [sample(900.0, 500.0), sample(1_000.0, 400.0), sample(1_100.0, 300.0)];
        let row = Row::of(case, &samples).unwrap();
        assert!((row.per_packet.median - 1_000.0).abs() < 1e-6, "{row:?}");
        assert!((row.breakdown.iter().sum::<f64>() - 1_000.0).abs() < 1e-6);
        assert!((row.scaled_gbit_per_s.median - 1_448.0 * 8.0 / 400.0).abs() < 1e-6);
        assert!((row.packets_per_delivery.median - 10.0).abs() < 1e-9);
        assert!((row.acks_per_packet.median - 0.5).abs() < 1e-9);
        assert!((row.handed_over_per_packet.median - 0.05).abs() < 1e-9);
        assert_eq!(row.retransmissions, 3);
        assert_eq!(row.sent_again_percent.max, 0.05, "one of twice the packets that count");
        assert!(Row::of(case, &[]).is_none());
        let json = serde_json::to_value(&row).unwrap();
        assert!(json["breakdown"]["driver"].as_f64().unwrap() > 0.0, "{json}");
        assert!((row.expansion_per_ack() - 1_000.0 / 8.0 / 0.5).abs() < 1e-6);
    }

    #[test]
    fn gains_are_over_the_same_place() {
        let rows = [
            row(Case::SINGLE, 2_000.0, 1_000.0),
            row(Case::one_processor(Stack::ORIGINAL), 1_000.0, 500.0),
            row(Case::one_processor(Stack::OPTIMIZED), 400.0, 250.0),
            row(Case::two_processors(Stack::OPTIMIZED), 400.0, 250.0),
            row(Case::one_processor(Stack::OPTIMIZED).expanded_by_card(), 250.0, 200.0),
        ];
        let rows = Rows(&rows);
        let gain = rows.gain(Case::one_processor(Stack::OPTIMIZED)).unwrap();
        assert!((gain.instructions - 2.5).abs() < 1e-9 && (gain.time - 2.0).abs() < 1e-9);
        let by_card = rows.gain(Case::one_processor(Stack::OPTIMIZED).expanded_by_card()).unwrap();
        assert!((by_card.instructions - 4.0).abs() < 1e-9, "over the same Original");
        assert_eq!(rows.gain(Case::two_processors(Stack::OPTIMIZED)), None);
        assert_eq!((rows.connections(), rows.limits().len()), (vec![1], 1));
    }
}
