//! Range checks for the numbers and times of a plan. The error for a value that is out of range states the
//! permitted range.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::Result;
use rxo_console::fault::usage;
use rxo_console::numbers::parse_time;

/// Returns `value`, which was given to `flag`, if it is in `range`.
///
/// # Errors
/// If `value` is outside `range`; the message names the range.
pub fn within<T: PartialOrd + Display>(
    flag: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    let (from, to) = range.into_inner();
    Err(usage(format!("{flag} {value}: choose {from} to {to}")))
}

/// Parses the time given to `--seconds`, which must be in `range`.
///
/// # Errors
/// If `text` is not a time in `range`; the message states the range.
pub fn duration(text: &str, range: RangeInclusive<Duration>) -> Result<Duration> {
    parse_time(text).filter(|time| range.contains(time)).ok_or_else(|| {
        let [from, to] = [range.start(), range.end()].map(Duration::as_secs_f64);
        usage(format!("--seconds {text}: choose {from}s to {to}s"))
    })
}
