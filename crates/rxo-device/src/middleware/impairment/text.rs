//! Impairment settings in text form: `loss=1%,reorder=1%/3,delay=20ms,…`.

use std::fmt;
use std::str::FromStr;

use rxo_frame::Duration;
use thiserror::Error;

use super::{Displacement, ImpairmentSettings};

/// Error: an item of the settings is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{item}: {accepted}")]
pub struct BadImpairment {
    /// The invalid item of the settings.
    item: String,
    /// A description of the accepted values.
    accepted: String,
}

impl FromStr for ImpairmentSettings {
    type Err = BadImpairment;

    /// Parses items separated by commas, such as `loss=1%,delay=20ms`. Settings that are not mentioned have
    /// their default.
    fn from_str(text: &str) -> Result<Self, BadImpairment> {
        let mut items = text.split(',').filter(|item| !item.is_empty());
        items.try_fold(Self::default(), |settings, item| {
            with(settings, item)
                .map_err(|accepted| BadImpairment { item: item.to_owned(), accepted })
        })
    }
}

impl fmt::Display for ImpairmentSettings {
    /// Formats all settings except `limit_bytes`. Parsing the result gives the same settings, with the default
    /// `limit_bytes`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |ppm: u32| f64::from(ppm) / 10_000.0;
        let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
        let Self { loss_ppm, duplicate_ppm, reorder_ppm, displacement, .. } = self;
        let by = match displacement.frames {
            Some(frames) => frames.to_string(),
            None => format!("{}ms", ms(displacement.time)),
        };
        write!(f, "loss={}%,duplicate={}%,", percent(*loss_ppm), percent(*duplicate_ppm))?;
        write!(f, "reorder={}%/{by},delay={}ms,", percent(*reorder_ppm), ms(self.delay))?;
        write!(f, "jitter={}ms,gather={}ms,", ms(self.jitter), ms(self.gather))?;
        if let Some(rate) = self.rate_bytes_per_s {
            write!(f, "rate={}kbit,", rate / 125)?;
        }
        write!(f, "limit={},seed={}", self.limit_frames, self.seed)
    }
}

/// A parsed value, or a description of the accepted values.
type Parsed<T> = Result<T, String>;

/// Applies one item to the settings. The error describes the accepted values.
fn with(settings: ImpairmentSettings, item: &str) -> Parsed<ImpairmentSettings> {
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
        _ => return Err(ITEMS.to_owned()),
    };
    Ok(with)
}

/// Parses a percentage. Returns parts per million.
fn share(text: &str) -> Parsed<u32> {
    let percent = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
    percent
        .map(|percent| (percent * 10_000.0).round() as u32)
        .ok_or_else(|| "give a share from 0% to 100%, such as 1%".to_owned())
}

/// Parses a share and a displacement in frames or time, such as `1%/3`.
fn reorder(text: &str) -> Parsed<(u32, Displacement)> {
    let default = Displacement::default();
    let Some((part, by)) = text.split_once('/') else { return Ok((share(text)?, default)) };
    let displacement = match by.parse() {
        Ok(frames) => Displacement { frames: Some(frames), ..default },
        Err(_) => Displacement {
            frames: None,
            time: time(by).map_err(|_| {
                "give a share and by how much, such as 1%/3 (frames) or 1%/5ms".to_owned()
            })?,
        },
    };
    Ok((share(part)?, displacement))
}

/// Parses `250us`, `20ms`, `1.5s` or `2` (seconds).
fn time(text: &str) -> Parsed<Duration> {
    let units = [("ms", 1e-3), ("us", 1e-6), ("s", 1.0), ("", 1.0)];
    let seconds = units.into_iter().find_map(|(unit, seconds)| {
        let number = text.strip_suffix(unit)?;
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let value: f64 = number.parse().ok().filter(|_| is_plain)?;
        Some(value * seconds)
    });
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|time| *time <= LONGEST)
        .ok_or_else(|| "give a time from 0ms to 10s, such as 20ms".to_owned())
}

fn rate(text: &str) -> Parsed<u64> {
    parse_rate(text).ok_or_else(|| "give a rate such as 800kbit, 100mbit or 10gbit".to_owned())
}

/// Parses a rate such as `800kbit`, `100mbit` or `10gbit` per second. Returns bytes per second; `None` for any
/// other input, and for less than one byte per second.
#[must_use]
pub fn parse_rate(text: &str) -> Option<u64> {
    let units = [("kbit", 125), ("mbit", 125_000), ("gbit", 125_000_000)];
    units.into_iter().find_map(|(unit, bytes)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(bytes).filter(|bytes| *bytes > 0)
    })
}

fn frames(text: &str) -> Parsed<usize> {
    text.parse()
        .ok()
        .filter(|frames| (1..=MOST_FRAMES).contains(frames))
        .ok_or_else(|| format!("give a number of frames from 1 to {MOST_FRAMES}"))
}

fn seed(text: &str) -> Parsed<u64> {
    text.parse().map_err(|_| "give a whole number".to_owned())
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
        let read = |text: &str| text.parse::<ImpairmentSettings>().unwrap();
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
        assert_eq!(read(&all.to_string()), all);
        let by_time = read("reorder=1%/5ms").displacement;
        assert_eq!(by_time, Displacement { frames: None, time: Duration::from_millis(5) });
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows = [
            ("loss=1", "loss=1: give a share from 0% to 100%"),
            ("delay=1ms,loss=101%", "loss=101%: give a share"),
            ("reorder=1%/x", "reorder=1%/x: give a share and by how much"),
            ("delay=1h", "delay=1h: give a time from 0ms to 10s"),
            ("rate=5", "rate=5: give a rate such as"),
            ("rate=0mbit", "rate=0mbit: give a rate such as"),
            ("limit=0", "limit=0: give a number of frames from 1"),
            ("seed=x", "seed=x: give a whole number"),
            ("corrupt=1%", "corrupt=1%: give loss=1%"),
        ];
        for (text, message) in rows {
            let error = text.parse::<ImpairmentSettings>().unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
