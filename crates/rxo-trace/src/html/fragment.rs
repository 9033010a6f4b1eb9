//! The part of a report that a notebook shows: the decision, the headline figures, the notes, and the figures.
//!
//! A notebook puts the fragment into a page of its own, so every style rule is limited to the elements below
//! one class, and the colours follow the theme of the notebook. There are no scripts and no links.

use std::sync::OnceLock;

use askama::Template;

use super::page::{HtmlError, Tile, headline, tiles};
use super::prose::{Span, spans};
use super::table::Drawing;
use super::{course, polls};
use crate::figure::STYLE;
use crate::report::Report;

/// Returns the report's decision and figures as HTML to be put into another page, such as a notebook.
///
/// # Errors
/// If the template fails, which only a bug can cause.
///
/// # Examples
/// ```
/// use rxo_trace::html;
/// use rxo_trace::report::Report;
///
/// let fragment = html::fragment(&Report::default())?;
/// assert!(fragment.starts_with("<div class=\"rxo-study\">"));
/// # Ok::<(), html::HtmlError>(())
/// ```
pub fn fragment(report: &Report) -> Result<String, HtmlError> {
    Fragment::of(report).render().map_err(HtmlError::of)
}

#[derive(Template)]
#[template(path = "fragment.html")]
struct Fragment<'a> {
    style: &'static str,
    headline: String,
    lead: Vec<Span>,
    partial: Option<&'a str>,
    notes: Vec<Vec<Span>>,
    tiles: Vec<Tile>,
    drawings: Vec<Drawing>,
}

impl<'a> Fragment<'a> {
    fn of(report: &'a Report) -> Self {
        let polls = polls::section(report).into_iter().flat_map(|section| section.drawings);
        Self {
            style: style(),
            headline: headline(report),
            lead: spans(&report.decision.sentence),
            partial: report.partial.as_deref(),
            notes: report.notes.iter().map(|note| spans(note)).collect(),
            tiles: tiles(report),
            drawings: course::drawing(&report.course).into_iter().chain(polls).collect(),
        }
    }
}

/// Returns the style rules of the fragment, all limited to the elements below its class.
///
/// A notebook marks a dark theme by an attribute (Jupyter) or a class (VS Code). Elsewhere the browser's
/// setting decides.
fn style() -> &'static str {
    static RULES: OnceLock<String> = OnceLock::new();
    RULES.get_or_init(|| {
        let (light, dark) = STYLE.split_once(DARK_QUERY).unwrap_or((STYLE, ""));
        let dark = format!("{DARK}{}", dark.strip_suffix('}').unwrap_or(dark));
        let rules = include_str!("../../templates/fragment.css").trim_end();
        format!(
            ".rxo-study{{{rules}{light}}}{THEMED} .rxo-study{{{dark}}}\
             @media screen and (prefers-color-scheme:dark){{{UNTHEMED} .rxo-study{{{dark}}}}}"
        )
    })
}

/// The beginning of the rules of figures for dark pages.
const DARK_QUERY: &str = "@media screen and (prefers-color-scheme:dark){";
const DARK: &str = "--ground:#14171c;--raised:#1c2128;--ink:#e8ebef;--muted:#a3acb8;--line:#2f3742;--accent:#5aa2ff;\
                    --warn:#d9a520;color-scheme:dark;";
const THEMED: &str = ":is([data-jp-theme-light=false],.vscode-dark)";
const UNTHEMED: &str = "body:not([data-jp-theme-light],.vscode-light,.vscode-dark)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_below_the_class_of_the_fragment() {
        let mut depth = 0;
        let mut outside = String::new();
        for letter in style().chars() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ if depth == 0 => outside.push(letter),
                _ => {}
            }
        }
        assert_eq!(depth, 0, "the braces do not match");
        let expected =
            format!(".rxo-study{THEMED} .rxo-study@media screen and (prefers-color-scheme:dark)");
        assert_eq!(outside, expected);
    }

    #[test]
    fn dark_figures_have_rules_of_their_own() {
        assert!(STYLE.contains(DARK_QUERY));
    }
}
