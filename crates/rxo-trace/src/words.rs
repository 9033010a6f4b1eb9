//! Formats numbers, times and sizes for sentences of reports.

use core::time::Duration;

use rxo_console::log::timestamp;

use crate::figure::number;

/// Formats a whole number with its digits in groups of three.
pub(crate) fn count(value: u64) -> String {
    number(value as f64)
}

/// Formats a share from 0 to 1 as a percentage. A positive share is never printed as 0 %, and a share below 1
/// is never printed as 100 %.
pub(crate) fn percent(share: f64) -> String {
    let tenths = (share * 1_000.0).round() / 10.0;
    match share {
        s if s > 0.0 && tenths == 0.0 => "< 0.1 %".to_owned(),
        s if s < 1.0 && tenths >= 100.0 => "> 99.9 %".to_owned(),
        _ => format!("{tenths} %"),
    }
}

/// Formats a duration, given in nanoseconds, in a suitable unit.
pub(crate) fn duration(ns: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    let unit = UNITS.iter().find(|(unit, _)| ns >= *unit);
    unit.map_or_else(
        || format!("{} ns", number(ns)),
        |(unit, name)| format!("{} {name}", number(ns / unit)),
    )
}

/// Formats a number of bytes in a suitable decimal unit.
pub(crate) fn bytes(value: u64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let unit = UNITS.iter().find(|(unit, _)| value as f64 >= *unit);
    unit.map_or_else(
        || plural(value, "byte"),
        |(unit, name)| format!("{} {name}", number(value as f64 / unit)),
    )
}

/// Formats a number with its noun: "1 flow", "2 flows", "2 deliveries". A noun that ends in a vowel and y, such as "delay", is
/// not for this function.
pub(crate) fn plural(value: u64, one: &str) -> String {
    let noun = match one.strip_suffix('y') {
        Some(stem) => format!("{stem}{}", form(value, "y", "ies")),
        None => format!("{one}{}", form(value, "", "s")),
    };
    format!("{} {noun}", count(value))
}

/// Returns the form of a word for a number: `one` for 1, otherwise `many`.
pub(crate) const fn form<'a>(value: u64, one: &'a str, many: &'a str) -> &'a str {
    if value == 1 { one } else { many }
}

/// Returns `sentence` for a number: `{}` is replaced by the number, and `[one|many]` by the form for it. The number itself
/// stands in `sentence`, because its verbs and pronouns depend on it too.
pub(crate) fn agreeing(value: u64, sentence: &str) -> String {
    let mut parts = sentence.split('[');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (forms, rest) = part.split_once(']').unwrap_or((part, ""));
        let (one, many) = forms.split_once('|').unwrap_or((forms, forms));
        text.push_str(form(value, one, many));
        text.push_str(rest);
    }
    text.replace("{}", &count(value))
}

/// Formats a time, given as Unix time in nanoseconds, as date and time in UTC.
#[must_use]
pub fn utc(ns: u64) -> String {
    let text = timestamp(Duration::from_nanos(ns));
    let (date, time) = text.split_once('T').unwrap_or_default();
    format!("{date} {} UTC", time.split('.').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let rows = [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_795_253_385, "2026-11-21 09:29:45 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ];
        for (seconds, text) in rows {
            assert_eq!(utc(seconds * 1_000_000_000), text);
        }
    }

    #[test]
    fn a_share_is_never_rounded_to_all_or_nothing() {
        let rows = [
            (0.0, "0 %"),
            (0.000_01, "< 0.1 %"),
            (0.034, "3.4 %"),
            (0.5, "50 %"),
            (0.997, "99.7 %"),
            (0.999_99, "> 99.9 %"),
            (1.0, "100 %"),
            (-0.25, "-25 %"),
        ];
        for (share, text) in rows {
            assert_eq!(percent(share), text);
        }
    }

    #[test]
    fn units_suit_the_size() {
        assert_eq!(duration(950.0), "950 ns");
        assert_eq!(duration(33_170.0), "33.2 µs");
        assert_eq!(duration(2.5e9), "2.5 s");
        assert_eq!((bytes(1), bytes(999)), ("1 byte".into(), "999 bytes".into()));
        assert_eq!(bytes(1_500_000), "1.5 MB");
        assert_eq!(
            (plural(1, "flow"), plural(1_200, "flow")),
            ("1 flow".into(), "1,200 flows".into())
        );
        assert_eq!(
            (plural(1, "delivery"), plural(0, "delivery")),
            ("1 delivery".into(), "0 deliveries".into())
        );
    }

    #[test]
    fn a_sentence_agrees_with_its_number() {
        let sentence = "{} [packet is|packets are] late: [it counts|they count]";
        assert_eq!(agreeing(1, sentence), "1 packet is late: it counts");
        assert_eq!(agreeing(1_200, sentence), "1,200 packets are late: they count");
        assert_eq!(agreeing(0, "no form"), "no form");
    }
}
