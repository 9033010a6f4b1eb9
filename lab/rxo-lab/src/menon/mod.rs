//! `rxo-lab menon`: repeats Menon and Zwaenepoel, "Optimizing TCP Receive Performance" (2008). [`receive`]
//! measures a receiving host (section 5), [`acks`] (`rxo-lab menon acks`) senders that count ACKs (sections
//! 3.4 and 4), and [`card`] (`rxo-lab menon card`) a host whose device costs it nothing. The paper's values, the
//! figures and the claims stand in `claims/menon*.json`.

pub(crate) mod acks;
pub(crate) mod card;
pub(crate) mod receive;
mod stack;

use serde_json::Value;

use crate::fit::Fit;
use crate::study::{Rows, rows_of};

/// Returns each value once, in the order of its first occurrence: what several parts share is measured once.
fn once<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    values.into_iter().fold(Vec::new(), |mut all, value| {
        if !all.contains(&value) {
            all.push(value);
        }
        all
    })
}

/// Adds the curve `fit` over the rows of `table` for which `is_in` is true: the median of `cost`, times `factor`,
/// by their Aggregation Limit.
fn add_fit(rows: &mut Rows, table: &str, (cost, factor): (&str, f64), is_in: fn(&Value) -> bool) {
    let of = |row: &Value| {
        let limit = row["stack"]["aggregation_limit"].as_f64()?;
        Some((limit, factor * row[cost]["median"].as_f64()?))
    };
    let is_in = |row: &&Value| row["stack"]["ack_offload"] == true && is_in(row);
    let points: Vec<_> = rows_of(rows, table).iter().filter(is_in).filter_map(of).collect();
    rows.insert("fit".to_owned(), serde_json::to_value(Fit::of(&points, 3)).unwrap_or_default());
}
