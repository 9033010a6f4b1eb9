//! `--impair loss=1%,delay=20ms,…` as settings.

use std::time::Duration;

use anyhow::{Result, anyhow};
use rxo_device::middleware::{Displacement, ImpairmentSettings};

use crate::exit::usage;
use crate::numbers::parse_time;

/// Parses the value of `flag`.
///
/// # Errors
/// If an item is invalid. The message names it and says what would be accepted.
pub(super) fn settings(flag: &str, text: &str) -> Result<ImpairmentSettings> {
    let items = text.split(',').filter(|item| !item.is_empty());
    items.into_iter().try_fold(ImpairmentSettings::default(), |settings, item| {
        with(settings, item).map_err(|accepted| usage(format!("{flag} {item}: {accepted}")))
    })
}

/// The settings as text that [`settings`] parses.
pub(super) fn text(settings: &ImpairmentSettings) -> String {
    let percent = |ppm: u32| f64::from(ppm) / 10_000.0;
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    let ImpairmentSettings { loss_ppm, duplicate_ppm, reorder_ppm, displacement, .. } = settings;
    let by = match displacement.frames {
        Some(frames) => frames.to_string(),
        None => format!("{}ms", ms(displacement.time)),
    };
    let mut items = vec![
        format!("loss={}%", percent(*loss_ppm)),
        format!("duplicate={}%", percent(*duplicate_ppm)),
        format!("reorder={}%/{by}", percent(*reorder_ppm)),
        format!("delay={}ms", ms(settings.delay)),
        format!("jitter={}ms", ms(settings.jitter)),
        format!("gather={}ms", ms(settings.gather)),
    ];
    items.extend(settings.rate_bytes_per_s.map(|rate| format!("rate={}kbit", rate / 125)));
    items.push(format!("limit={},seed={}", settings.limit_frames, settings.seed));
    items.join(",")
}

/// Applies one item to the settings. The error says what would be accepted.
fn with(settings: ImpairmentSettings, item: &str) -> Result<ImpairmentSettings> {
    let (name, value) = item.split_once('=').unwrap_or((item, ""));
    let with = match name {
        "loss" => ImpairmentSettings { loss_ppm: share(value)?, ..settings },
        "duplicate" => ImpairmentSettings { duplicate_ppm: share(value)?, ..settings },
        "reorder" => {
            let (part, displacement) = reorder(value)?;
            ImpairmentSettings { reorder_ppm: part, displacement, ..settings }
        }
        "delay" => ImpairmentSettings { delay: time(value)?, ..settings },
        "jitter" => ImpairmentSettings { jitter: time(value)?, ..settings },
        "gather" => ImpairmentSettings { gather: time(value)?, ..settings },
        "rate" => ImpairmentSettings { rate_bytes_per_s: Some(rate(value)?), ..settings },
        "limit" => ImpairmentSettings { limit_frames: frames(value)?, ..settings },
        "seed" => ImpairmentSettings { seed: seed(value)?, ..settings },
        _ => return Err(anyhow!("{ITEMS}")),
    };
    Ok(with)
}

/// Parses a percentage, as parts of a million.
fn share(text: &str) -> Result<u32> {
    let percent = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
    percent
        .map(|percent| (percent * 10_000.0).round() as u32)
        .ok_or_else(|| anyhow!("give a share from 0% to 100%, such as 1%"))
}

/// Parses a share and a distance in frames or time.
fn reorder(text: &str) -> Result<(u32, Displacement)> {
    let default = Displacement::default();
    let Some((part, by)) = text.split_once('/') else { return Ok((share(text)?, default)) };
    let displacement = match by.parse() {
        Ok(frames) => Displacement { frames: Some(frames), ..default },
        Err(_) => Displacement {
            frames: None,
            time: time(by).map_err(|_| {
                anyhow!("give a share and by how much, such as 1%/3 (frames) or 1%/5ms")
            })?,
        },
    };
    Ok((share(part)?, displacement))
}

fn time(text: &str) -> Result<Duration> {
    parse_time(text)
        .filter(|time| *time <= LONGEST)
        .ok_or_else(|| anyhow!("give a time from 0ms to 10s, such as 20ms"))
}

fn rate(text: &str) -> Result<u64> {
    let units = [("kbit", 125), ("mbit", 125_000), ("gbit", 125_000_000)];
    let bytes = units.into_iter().find_map(|(unit, bytes)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(bytes).filter(|bytes| *bytes > 0)
    });
    bytes.ok_or_else(|| anyhow!("give a rate such as 800kbit, 100mbit or 10gbit"))
}

fn frames(text: &str) -> Result<usize> {
    text.parse()
        .ok()
        .filter(|frames| (1..=MOST_FRAMES).contains(frames))
        .ok_or_else(|| anyhow!("give a number of frames from 1 to {MOST_FRAMES}"))
}

fn seed(text: &str) -> Result<u64> {
    text.parse().map_err(|_| anyhow!("give a whole number"))
}

const ITEMS: &str = "give loss=1%, duplicate=1%, reorder=1%/3, delay=20ms, jitter=1ms, gather=0.25ms, \
                     rate=100mbit, limit=1000, seed=1, with commas between them";
const LONGEST: Duration = Duration::from_secs(10);
const MOST_FRAMES: usize = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_sets_its_own() {
        let read = |text: &str| settings("--impair", text).unwrap();
        let default = ImpairmentSettings::default();
        assert_eq!(read(""), default);
        let all = read(
            "loss=1.5%,duplicate=0.1%,reorder=2%/5,delay=20ms,jitter=1ms,gather=0.25ms,rate=10mbit,limit=77,seed=9",
        );
        let displacement = Displacement { frames: Some(5), ..Displacement::default() };
        let expected = ImpairmentSettings {
            seed: 9,
            loss_ppm: 15_000,
            duplicate_ppm: 1_000,
            reorder_ppm: 20_000,
            displacement,
            delay: Duration::from_millis(20),
            jitter: Duration::from_millis(1),
            gather: Duration::from_micros(250),
            rate_bytes_per_s: Some(1_250_000),
            limit_frames: 77,
            ..default
        };
        assert_eq!(all, expected);
        assert_eq!(read(&text(&all)), all);
        let by_time = read("reorder=1%/5ms").displacement;
        assert_eq!(by_time, Displacement { frames: None, time: Duration::from_millis(5) });
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows = [
            ("loss=1", "--impair loss=1: give a share from 0% to 100%"),
            ("delay=1ms,loss=101%", "--impair loss=101%: give a share"),
            ("reorder=1%/x", "--impair reorder=1%/x: give a share and by how much"),
            ("delay=1h", "--impair delay=1h: give a time from 0ms to 10s"),
            ("rate=5", "--impair rate=5: give a rate such as"),
            ("rate=0mbit", "--impair rate=0mbit: give a rate such as"),
            ("limit=0", "--impair limit=0: give a number of frames from 1"),
            ("seed=x", "--impair seed=x: give a whole number"),
            ("corrupt=1%", "--impair corrupt=1%: give loss=1%"),
        ];
        for (text, message) in rows {
            let error = settings("--impair", text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
