//! Fills the templates of a book: texts with expressions in braces. Pure.
//!
//! `{expression}` is a value as it is, `{expression:.1}` a number with one decimal, `{expression:+.0}` one with
//! its sign, and `{expression:grouped}` a count with its thousands apart. A unit may follow the decimals, and behind a
//! bar stands what is shown for a missing value: `{expression:.1 ms|never}`.

use anyhow::{Context, Result};
use rxo_console::numbers::grouped;

use super::functions::text;
use super::scope::Scope;

/// Returns `template` with its values; `None` if one is missing.
pub(super) fn fill(scope: &Scope<'_>, template: &str) -> Result<Option<String>> {
    let (mut filled, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, after) = after.split_once('}').context("a template lacks a `}`")?;
        let (inside, instead) =
            inside.split_once('|').map_or((inside, None), |(of, instead)| (of, Some(instead)));
        let Some(value) = value(scope, inside)?.or_else(|| instead.map(str::to_owned)) else {
            return Ok(None);
        };
        filled.push_str(before);
        filled.push_str(&value);
        rest = after;
    }
    Ok(Some(filled + rest))
}

/// Returns the value of `inside` as text; `None` if it is missing.
fn value(scope: &Scope<'_>, inside: &str) -> Result<Option<String>> {
    let (of, form) = match inside.rsplit_once(':') {
        Some((of, form)) if form == "grouped" || form.trim_start_matches('+').starts_with('.') => {
            (of, form)
        }
        _ => (inside, ""),
    };
    if form.is_empty() {
        let values = scope.values(of)?;
        let shown: Vec<_> =
            values.iter().map(|value| scope.book.label(&text(value)).to_owned()).collect();
        return Ok((!shown.is_empty()).then(|| shown.join(", ")));
    }
    let Some(value) = scope.point(of)?.map(|point| point.value) else { return Ok(None) };
    let (decimals, unit) =
        form.trim_start_matches(['+', '.']).split_at_checked(1).unwrap_or_default();
    let decimals = decimals.parse::<usize>().unwrap_or_default();
    Ok(Some(match form.as_bytes()[0] {
        b'g' => grouped(value as u64),
        b'+' => format!("{value:+.decimals$}{unit}"),
        _ => format!("{value:.decimals$}{unit}"),
    }))
}
