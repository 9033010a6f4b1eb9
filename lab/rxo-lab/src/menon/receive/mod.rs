//! `rxo-lab menon`: measures the gain of Receive Aggregation and Acknowledgment Offload for a receiving host
//! (section 5), on rxo's own stack.
//!
//! The flags become a [`plan`] of [`stack`]s. [`measure`] runs a [`station`] (rxo's host with its [`worker`],
//! and reading threads) with Linux senders. It returns a [`sample`], in which the worker's [`stages`] are
//! mapped to the paper's [`category`]s. Samples become [`row`]s, and rows become [`figures`] with a [`fit`],
//! beside those of the [`paper`], and our own [`aims`].

mod aims;
mod category;
mod figures;
pub(super) mod fit;
mod measure;
pub(super) mod paper;
mod plan;
mod row;
mod sample;
pub(super) mod stack;
mod stages;
mod station;
mod units;
mod worker;

use anyhow::Result;
use rxo_demo::turns::{Cases, Turns};
use serde::Serialize;

pub(crate) use self::plan::{PARTS, Plan};
use self::row::{ExchangeRow, Row, Rows};
use self::sample::{Bulk, Exchange};
use self::stack::Case;
use self::units::Units;
use crate::runner::{Experiment, Outcome};

/// The results of all measurements.
#[derive(Debug, Serialize)]
struct Measured {
    bulk: Vec<Row>,
    exchange: Vec<ExchangeRow>,
}

impl Experiment for Plan {
    fn steps(&self) -> Result<usize> {
        Ok(self.effort.rounds * (self.bulk.len() + self.exchange.len()))
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Outcome> {
        let rounds = self.effort.rounds;
        let bulk = turns.measure(
            Cases { cases: &self.bulk, rounds, rotated: 1 },
            Case::name,
            |case, _| measure::bulk(case, self),
            bulk_line,
        )?;
        let exchange = turns.measure(
            Cases { cases: &self.exchange, rounds, rotated: 1 },
            |stack| format!("exchange, {}", stack.name()),
            |stack, _| measure::request_response(stack, self),
            |sample: &Exchange| format!("{:>6.0} a second", sample.per_s),
        )?;
        let bulk = self.bulk.iter().zip(&bulk);
        let bulk = bulk.filter_map(|(case, samples)| Row::of(*case, samples)).collect();
        let exchange = self.exchange.iter().zip(&exchange);
        let exchange = exchange.filter_map(|(stack, samples)| ExchangeRow::of(*stack, samples));
        let measured = Measured { bulk, exchange: exchange.collect() };
        let rows = Rows { bulk: &measured.bulk, exchange: &measured.exchange };
        let units = Units::of_machine();
        let outcome = Outcome::new(figures::all(rows, units), &measured)?;
        Ok(outcome.claims(aims::all(rows)).facts(self.facts(units)))
    }
}

fn bulk_line(sample: &Bulk) -> String {
    let (rate, scaled) = (sample.gbit_per_s(), sample.scaled_gbit_per_s());
    format!("{rate:>6.2} Gbit/s  {scaled:>6.2} Gbit/CPU s")
}
