//! Formats and parses numbers, byte counts and durations in human-readable form.

use std::time::Duration;

/// Formats a number with commas between groups of three digits: `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns the rate in Gbit/s at which `bytes` bytes passed in `time`.
pub fn gbit_per_s(bytes: u64, time: Duration) -> f64 {
    ratio(bytes as f64 * 8.0 / 1e9, time.as_secs_f64())
}

/// Returns `part / whole`; 0 if `whole` is 0.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Rounds `value` to `digits` decimal places, so that JSON shows no more digits than were measured.
pub fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

/// Parses a time: `50us`, `250ms`, `1s`, `1.5s`, `2` (seconds), `10m` or `10min`. `None` if `text` is invalid.
pub fn parse_time(text: &str) -> Option<Duration> {
    // Endings are tried in this order, because "ms" and "us" also end in "s".
    let units = [("ms", 1e-3), ("us", 1e-6), ("s", 1.0), ("min", 60.0), ("m", 60.0)];
    let with_unit = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
    let (number, unit_s) = with_unit.unwrap_or((text, 1.0));
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value: f64 = number.parse().ok().filter(|_| plain)?;
    Duration::try_from_secs_f64(value * unit_s).ok()
}

/// Parses a number of bytes: `1000`, `64k`, `10M` or `1G` (powers of 1000), `64KiB`, `10MiB` or `1GiB` (powers of
/// 1024). `None` if `text` is invalid.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let units = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("k", 1_000),
        ("K", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
    ];
    let with_unit = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
    let (number, unit) = with_unit.unwrap_or((text, 1));
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups_of_three() {
        let rows = [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")];
        for (number, text) in rows {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn times_are_read_with_their_unit() {
        let rows = [("1s", 1_000), ("250ms", 250), ("1.5s", 1_500), ("2", 2_000), ("0s", 0)];
        let minutes = [("1m", 60_000), ("10min", 600_000), ("0.5m", 30_000)];
        for (text, ms) in rows.into_iter().chain(minutes) {
            assert_eq!(parse_time(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for text in [
            "",
            "s",
            "m",
            "1h",
            "1mins",
            "-1m",
            "-1s",
            "1e3s",
            "inf",
            "NaN",
            "1..2s",
            "9999999999999999999999s",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn bytes_are_read_with_their_unit() {
        let rows = [("7", 7), ("64k", 64_000), ("2M", 2_000_000), ("1G", 1_000_000_000)];
        let binary = [("64KiB", 65_536), ("6MiB", 6 << 20), ("1GiB", 1 << 30)];
        for (text, bytes) in rows.into_iter().chain(binary) {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for text in ["", "k", "KiB", "1.5M", "-1", "1kb", "99999999999999999999", "99999999999GiB"]
        {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }

    #[test]
    fn nothing_in_no_time_is_nothing() {
        assert!(gbit_per_s(0, Duration::ZERO) < f64::EPSILON);
        assert!((gbit_per_s(125_000_000, Duration::from_secs(1)) - 1.0).abs() < 1e-9);
    }
}
