//! Formats numbers for readers.

/// Formats a value in few characters, for axes: `0.25`, `12`, `1.5k`, `20M`.
#[must_use]
pub fn short(value: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    // Up to 9,999, all digits are short enough.
    let unit = UNITS.iter().find(|(unit, _)| value.abs() >= unit.max(1e4));
    match unit {
        Some((unit, suffix)) => format!("{}{suffix}", digits(value / unit)),
        None => digits(value),
    }
}

/// Formats a value with digit groups before the point and at most three significant digits after
/// it.
#[must_use]
pub fn full(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    if value.abs() < 1_000.0 {
        return digits(value);
    }
    let rounded = format!("{:.0}", value.abs());
    let mut text = if value < 0.0 { "-".to_owned() } else { String::new() };
    for (index, digit) in rounded.chars().enumerate() {
        if index > 0 && (rounded.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a share from 0 to 1 as a percentage.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

/// Formats three significant digits, without trailing zeros.
fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let before = value.abs().log10().floor() as i32 + 1;
    let after = (3 - before).clamp(0, 9) as usize;
    let text = format!("{value:.after$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_fit_beside_an_axis() {
        let rows = [
            (0.0, "0"),
            (0.25, "0.25"),
            (0.000_5, "0.0005"),
            (12.0, "12"),
            (999.9, "1000"),
            (5_000.0, "5000"),
            (10_000.0, "10k"),
            (12_500.0, "12.5k"),
            (2e6, "2M"),
            (3.2e10, "32G"),
            (-20_000.0, "-20k"),
        ];
        for (value, text) in rows {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn full_numbers_stand_in_groups() {
        let rows = [
            (1_234_567.0, "1,234,567"),
            (-1_000.0, "-1,000"),
            (999.0, "999"),
            (0.123_456, "0.123"),
            (f64::NAN, "-"),
        ];
        for (value, text) in rows {
            assert_eq!(full(value), text);
        }
        assert_eq!(percent(0.125), "12.5 %");
    }
}
