//! Parses and prints times as users type them.

use rxo_frame::Duration;

const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// Parses a time such as `50us`, `1500ns`, `2ms` or `1s`: a whole number with a unit. `None` if `text` is invalid.
pub(crate) fn parse_time(text: &str) -> Option<Duration> {
    let (suffix, unit_ns) = UNITS.iter().find(|(suffix, _)| text.ends_with(suffix))?;
    let digits = text.strip_suffix(suffix)?;
    let count: u64 =
        digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    count.checked_mul(*unit_ns).map(Duration::from_nanos)
}

/// Formats a time as a whole number in the largest possible unit.
pub(super) fn show_time(time: Duration) -> String {
    let ns = time.as_nanos();
    let fits = |(_, unit_ns): &&(&str, u64)| ns.is_multiple_of(u128::from(*unit_ns)) && ns > 0;
    let (suffix, unit_ns) = UNITS.iter().rev().find(fits).unwrap_or(&UNITS[1]);
    format!("{}{suffix}", ns / u128::from(*unit_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_they_are_read() {
        for text in ["1ns", "999ns", "50us", "1500us", "2ms", "1s", "0us"] {
            assert_eq!(show_time(parse_time(text).unwrap()), text);
        }
        for text in ["", "us", "5", "-1us", "1.5us", "+1us", "1 us", "99999999999999999999s"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
