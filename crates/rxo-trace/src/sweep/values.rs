//! Expands ranges of values in a sweep.

/// The number of values at which the expansion of a range stops. No sweep may have so many values.
const TOO_MANY: usize = 1_000;

/// Returns the values of `item`: the item itself, or all values of a range.
pub(super) fn expand(item: &str) -> Result<Vec<String>, &'static str> {
    let Some((from, rest)) = item.split_once("..") else { return Ok(vec![item.to_owned()]) };
    let (to, step) = split_step(rest)?;
    let from = Numbered::read(from).ok_or(FORM)?;
    let to = Numbered::read(to).ok_or(FORM)?;
    // Text around the number may be omitted at one end, but must not differ.
    let repeats = |part: &str, first: &str| part.is_empty() || part == first;
    if !(repeats(to.before, from.before)
        && (repeats(from.after, to.after) || from.after == to.after))
    {
        return Err("both ends of a range have one unit");
    }
    if from.number > to.number {
        return Err("a range goes up");
    }
    let numbers = step.numbers(from.number, to.number);
    Ok(numbers.map(|number| format!("{}{number}{}", from.before, to.after)).collect())
}

const FORM: &str = "a range is FROM..TO, FROM..TO+STEP or FROM..TO*FACTOR of whole numbers";

#[derive(Clone, Copy)]
enum Step {
    Add(u64),
    Times(u64),
}

impl Step {
    fn numbers(self, from: u64, to: u64) -> impl Iterator<Item = u64> {
        let next = move |number: &u64| match self {
            Self::Add(step) => number.checked_add(step),
            Self::Times(factor) => number.checked_mul(factor),
        };
        core::iter::successors(Some(from), next)
            .take_while(move |number| *number <= to)
            .take(TOO_MANY)
    }
}

fn split_step(text: &str) -> Result<(&str, Step), &'static str> {
    if let Some((to, factor)) = text.split_once('*') {
        let factor = factor.parse().ok().filter(|factor| *factor > 1);
        return Ok((to, Step::Times(factor.ok_or("the factor of a range is 2 or more")?)));
    }
    if let Some((to, step)) = text.split_once('+') {
        let step = step.parse().ok().filter(|step| *step > 0);
        return Ok((to, Step::Add(step.ok_or("the step of a range is 1 or more")?)));
    }
    Ok((text, Step::Add(1)))
}

/// A number with the characters before and after the number: `packets:` and 4, or 50 and `us`.
struct Numbered<'a> {
    before: &'a str,
    number: u64,
    after: &'a str,
}

impl<'a> Numbered<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let start = text.find(|c: char| c.is_ascii_digit())?;
        let (before, rest) = text.split_at(start);
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(end);
        let is_unit = after.chars().all(|c| c.is_ascii_alphabetic());
        digits.parse().ok().filter(|_| is_unit).map(|number| Self { before, number, after })
    }
}

/// Returns the number in `value`, converted to the smallest unit, so that values can be ordered; `None` if
/// `value` contains no number.
pub(crate) fn size_of(value: &str) -> Option<u64> {
    let Numbered { number, after, .. } = Numbered::read(value)?;
    let unit = match after {
        "" | "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(item: &str) -> String {
        expand(item).unwrap().join(" ")
    }

    #[test]
    fn ranges_are_written_out() {
        let rows = [
            ("7", "7"),
            ("end-of-poll", "end-of-poll"),
            ("1..4", "1 2 3 4"),
            ("4..64*2", "4 8 16 32 64"),
            ("4..64*4", "4 16 64"),
            ("2..10+3", "2 5 8"),
            ("packets:4..16*2", "packets:4 packets:8 packets:16"),
            ("packets:4..packets:8*2", "packets:4 packets:8"),
            ("time:10us..40us*2", "time:10us time:20us time:40us"),
            ("10..40us*2", "10us 20us 40us"),
            ("5..5", "5"),
        ];
        for (item, values) in rows {
            assert_eq!(expanded(item), values, "{item}");
        }
    }

    #[test]
    fn ranges_that_cannot_be_are_refused() {
        for item in
            ["8..1", "1..", "..3", "1..4*1", "1..4+0", "1..4*x", "10us..20ms", "a..b", "1..2..3"]
        {
            assert!(expand(item).is_err(), "{item}: {:?}", expand(item));
        }
        assert_eq!(expand("1..18446744073709551615").unwrap().len(), TOO_MANY);
    }

    #[test]
    fn values_are_ordered_by_what_they_mean() {
        assert_eq!(size_of("packets:64"), Some(64));
        assert!(size_of("time:2ms") > size_of("time:50us"));
        assert_eq!(size_of("keep"), None);
    }
}
