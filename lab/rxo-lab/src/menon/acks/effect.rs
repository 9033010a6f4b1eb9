//! Compares the rows of connections: finds those that came to full rate later than without rxo's treatment, the
//! largest `keep_every` that harms nobody, and the congestion windows at common times. Pure.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::Setting;
use super::connection::ROUND_TRIP;
use crate::study::{Rows, rows_of};

/// Adds to each row the time by which it is later than the row without treatment (`later_ms`), and to the rows of all
/// connections the choice of `keep_every` and the `curves`.
pub(super) fn derive(rows: &mut Rows, setting: Setting) -> Result<()> {
    let curves: Vec<Value> = ["counting", "reno", "cubic", "bbr"]
        .into_iter()
        .flat_map(|sender| curves(sender, rows_of(rows, "split")))
        .collect();
    for (table, case) in [("split", "treatment"), ("keep", "keep_every")] {
        let all = rows_of(rows, table).to_vec();
        let is_base = |row: &Value| row[case] == "none" || row[case].is_null();
        let base = |row: &Value| {
            all.iter().find(|it| {
                is_base(it) && it["sender"] == row["sender"] && it["network"] == row["network"]
            })
        };
        let with_times = all.iter().map(|row| {
            let mut row = row.clone();
            let base = base(&row).cloned().unwrap_or_default();
            row["later_ms"] = later_ms(always_full_ms(&row), always_full_ms(&base)).into();
            row["always_full_ms"] = always_full_ms(&row).into();
            row["harms"] = harms(&row, &base).into();
            row
        });
        let with_times: Vec<Value> = with_times.collect();
        rows.insert(table.to_owned(), with_times.into());
    }
    rows.insert("curves".to_owned(), curves.into());
    let keep = rows_of(rows, "keep");
    let choice = choice(keep);
    let has_keep = !keep.is_empty();
    let harmful = keep.iter().filter(|row| row["harms"] == true).map(|row| {
        let sender = row["sender"].as_str().unwrap_or_default();
        Value::from(format!("{sender} with {}", row["keep_every"]))
    });
    let harmful: Vec<Value> = harmful.collect();
    rows.insert("harmful".to_owned(), harmful.into());
    rows.insert("keep_every".to_owned(), choice.into());
    rows.insert("choice".to_owned(), has_keep.then_some(choice.unwrap_or(1)).into());
    rows.insert("rate_mbit_per_s".to_owned(), (setting.bytes_per_s / 125_000).into());
    Ok(())
}

/// Returns the median time to full rate in milliseconds; `None` unless every round reached it.
fn always_full_ms(row: &Value) -> Option<f64> {
    let is_always = row["full_rate_rounds"] == row["rounds"];
    row["full_rate_ms"]["median"].as_f64().filter(|_| is_always)
}

/// Returns the time in milliseconds by which `one` came to full rate later than `other`, beyond the variation
/// between measurements; `None` if neither did.
fn later_ms(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => {
            Some(one - (MOST_TIMES * other + ROUND_TRIP.as_secs_f64() * 1e3))
        }
        (None, Some(_)) => Some(NEVER_MS),
        (Some(_), None) => Some(-NEVER_MS),
        (None, None) => None,
    }
}

/// Returns `true` if the connection is slower or later than `base`, by more than the variation between measurements.
fn harms(row: &Value, base: &Value) -> bool {
    let rate = |row: &Value| row["mbit_per_s"]["median"].as_f64();
    let is_slower =
        rate(row).zip(rate(base)).is_some_and(|(with, without)| with < LEAST_SHARE * without);
    is_slower
        || later_ms(always_full_ms(row), always_full_ms(base)).is_some_and(|later| later > 0.0)
}

/// Returns the largest setting up to which no tried setting harms a sender. `None` if the smallest one harms,
/// or none was measured.
fn choice(keep: &[Value]) -> Option<u64> {
    let mut tried: Vec<u64> = keep.iter().filter_map(|row| row["keep_every"].as_u64()).collect();
    tried.sort_unstable();
    tried.dedup();
    let is_harmless = |setting: &u64| {
        !keep.iter().any(|row| row["keep_every"] == *setting && row["harms"] == true)
    };
    tried.into_iter().take_while(is_harmless).last()
}

/// Returns the congestion windows of `sender` over the delay at common times, a field for each treatment.
fn curves(sender: &str, split: &[Value]) -> Vec<Value> {
    let is_shown = |row: &&Value| row["sender"] == sender && row["network"] == "delay";
    let rows: Vec<&Value> = split.iter().filter(is_shown).collect();
    let points = |row: &Value| {
        serde_json::from_value::<Vec<(f64, f64)>>(row["window"].clone()).unwrap_or_default()
    };
    let curves: Vec<(String, Vec<(f64, f64)>)> = rows
        .iter()
        .map(|row| (row["treatment"].as_str().unwrap_or_default().replace('-', "_"), points(row)))
        .collect();
    let ends = curves.iter().filter_map(|(_, curve)| curve.last().map(|(at, _)| *at));
    let Some(end) = ends.reduce(f64::max) else { return Vec::new() };
    let at = |n| {
        let time = end * f64::from(n) / f64::from(POINTS);
        let mut row =
            Map::from_iter([("sender".to_owned(), sender.into()), ("at".to_owned(), time.into())]);
        // A curve keeps its value until the next point.
        row.extend(curves.iter().map(|(name, curve)| {
            let value = curve.iter().take_while(|(at, _)| *at <= time).last();
            (name.clone(), value.map(|(_, value)| *value).into())
        }));
        json!(row)
    };
    (0..=POINTS).map(at).collect()
}

/// Variation of the time to full rate between measurements, as a factor.
const MOST_TIMES: f64 = 1.1;
const LEAST_SHARE: f64 = 0.95;
/// The time that stands for never: longer than any connection is watched.
const NEVER_MS: f64 = 60_000.0;
/// Points of a curve.
const POINTS: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(sender: &str, keep_every: Option<u16>, mbit_per_s: f64, full_ms: Option<f64>) -> Value {
        json!({
            "sender": sender, "keep_every": keep_every, "mbit_per_s": { "median": mbit_per_s },
            "full_rate_ms": { "median": full_ms }, "full_rate_rounds": u64::from(full_ms.is_some()), "rounds": 1,
        })
    }

    /// Returns the choice over CUBIC's rows behind one without aggregation, and over those of `others`.
    fn chosen(rows: &[(u16, f64, Option<f64>)], others: &[Value]) -> Option<u64> {
        let base = row("cubic", None, 900.0, Some(200.0));
        let of = |&(every, rate, full)| row("cubic", Some(every), rate, full);
        let keep: Vec<Value> =
            [base].into_iter().chain(rows.iter().map(of)).chain(others.to_vec()).collect();
        let mut all =
            Rows::from_iter([("split".to_owned(), json!([])), ("keep".to_owned(), keep.into())]);
        let setting = Setting {
            effort: crate::limits::Effort { rounds: 1, duration: ROUND_TRIP },
            bytes_per_s: 25_000_000,
            cores: rxo_demo::machine::Cores { sender: None, receiver: None },
        };
        derive(&mut all, setting).unwrap();
        assert_eq!(all["rate_mbit_per_s"], 200);
        all["keep_every"].as_u64()
    }

    #[test]
    fn the_largest_that_harms_nobody_is_chosen() {
        let good = |every| (every, 890.0, Some(235.0));
        let (late, slow, never) =
            ((4, 890.0, Some(300.0)), (4, 800.0, Some(200.0)), (4, 890.0, None));
        assert_eq!(chosen(&[good(2), good(4), good(8)], &[]), Some(8));
        for bad in [late, slow, never] {
            assert_eq!(chosen(&[good(2), bad, good(8)], &[]), Some(2), "a fluke is no proof");
        }
        assert_eq!(chosen(&[late, good(8)], &[]), None);
        assert_eq!(chosen(&[], &[]), None);
        let reno = [row("reno", None, 900.0, None), row("reno", Some(2), 100.0, None)];
        assert_eq!(chosen(&[good(2)], &reno), None, "one sender that suffers is enough");
    }

    #[test]
    fn later_is_more_than_the_variation_and_never_is_later_than_any_time() {
        assert_eq!(later_ms(Some(350.0), Some(300.0)), Some(350.0 - 350.0));
        assert_eq!(later_ms(None, Some(300.0)), Some(NEVER_MS));
        assert_eq!((later_ms(Some(1.0), None), later_ms(None, None)), (Some(-NEVER_MS), None));
    }

    #[test]
    fn a_curve_keeps_its_value_until_the_next_point() {
        let row = json!({ "sender": "reno", "network": "delay", "treatment": "split-each",
            "window": [[0.1, 10.0], [0.3, 20.0], [1.0, 30.0]] });
        let found = curves("reno", &[row]);
        let at = |n: usize| found[n]["split_each"].as_f64();
        assert_eq!(
            (found.len(), at(9), at(10), at(20), at(31)),
            (101, None, Some(10.0), Some(10.0), Some(20.0))
        );
        assert!(curves("bbr", &[]).is_empty());
    }
}
