//! Formats numbers for readers.

/// Formats a value in few characters, for axes: `0.25`, `12`, `1.5k`, `20M`.
pub(crate) fn short(value: f64) -> String {
    match unit_of(value) {
        Some((unit, suffix)) => format!("{}{suffix}", digits(value / unit)),
        None => digits(value),
    }
}

/// Formats the round values of an axis with one unit and equally many digits after the point, except 0, which
/// has neither unit nor point. If `is_logarithmic`, values up to ten million are written with all their digits.
pub(super) fn ticks(values: &[f64], is_logarithmic: bool) -> Vec<String> {
    let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    if is_logarithmic {
        let of = if largest < 1e7 { full } else { short };
        return values.iter().map(|&value| of(value)).collect();
    }
    let (unit, suffix) = unit_of(largest).unwrap_or((1.0, ""));
    let is_exact = |after: &usize| {
        let scale = 10_f64.powi(*after as i32);
        values.iter().all(|value| {
            let scaled = value / unit * scale;
            (scaled - scaled.round()).abs() <= 1e-6 * scaled.abs().max(1.0)
        })
    };
    let after = (0..=MOST_DIGITS).find(is_exact).unwrap_or(MOST_DIGITS);
    let text = |&value: &f64| match value == 0.0 {
        true => "0".to_owned(),
        false => format!("{:.after$}{suffix}", value / unit),
    };
    values.iter().map(text).collect()
}

/// Returns the unit in which a value has few digits, with its suffix. `None` for values up to 9,999, which are
/// short enough without a unit.
fn unit_of(value: f64) -> Option<(f64, &'static str)> {
    const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    UNITS.into_iter().find(|(unit, _)| value.abs() >= unit.max(1e4))
}

/// Formats a value with digit groups before the point and at most three significant digits after
/// it.
pub(crate) fn full(value: f64) -> String {
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

/// The maximum number of digits after the point. The values of an axis are round, so they never need more
/// digits.
const MOST_DIGITS: usize = 9;

/// Formats a value with three significant digits, without trailing zeros.
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
    fn an_axis_has_one_unit() {
        let rows: [(&[f64], &[&str]); 6] = [
            (&[0.0, 5_000.0, 10_000.0, 15_000.0], &["0", "5k", "10k", "15k"]),
            (&[0.0, 2_500.0, 5_000.0], &["0", "2500", "5000"]),
            (&[0.0, 0.5, 1.0, 1.5], &["0", "0.5", "1.0", "1.5"]),
            (&[-0.002, 0.0, 0.002], &["-0.002", "0", "0.002"]),
            (&[0.0, 500_000.0, 1e6], &["0", "0.5M", "1.0M"]),
            (&[], &[]),
        ];
        for (values, names) in rows {
            assert_eq!(ticks(values, false), names);
        }
        let powers = [0.1, 1.0, 1_000.0, 1e6];
        assert_eq!(ticks(&powers, true), ["0.1", "1", "1,000", "1,000,000"]);
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
