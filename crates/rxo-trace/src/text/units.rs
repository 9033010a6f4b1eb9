//! Formats numbers with their units for readers.

use rxo_console::numbers::ratio;

use crate::words::form;

/// Formats `part` as a percentage of `whole`.
pub(super) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * ratio(part as f64, whole as f64))
}

/// Formats a number of bytes in decimal units, such as MB.
pub(super) fn bytes(count: u64) -> String {
    let one = form(count, "byte", "bytes");
    scaled(count, &[(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"), (1, one)])
}

/// Formats a number of nanoseconds in a suitable unit.
pub(crate) fn time(ns: u64) -> String {
    scaled(ns, &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")])
}

fn scaled(count: u64, units: &[(u64, &str); 4]) -> String {
    let (unit, name) = units.iter().find(|(unit, _)| count >= *unit).unwrap_or(&units[3]);
    let value = count as f64 / *unit as f64;
    let digits = if *unit == 1 || value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_about_three_digits() {
        let rows = [
            (bytes(0), "0 bytes"),
            (bytes(1), "1 byte"),
            (bytes(999), "999 bytes"),
            (bytes(1_234), "1.23 kB"),
            (bytes(65_535), "65.5 kB"),
            (bytes(123_456_789), "123 MB"),
            (time(50_000), "50.0 us"),
            (time(1), "1 ns"),
            (time(2_500_000_000), "2.50 s"),
            (percent(1, 8), "12.5 %"),
            (percent(1, 0), "0.0 %"),
        ];
        for (shown, expected) in rows {
            assert_eq!(shown, expected);
        }
    }
}
