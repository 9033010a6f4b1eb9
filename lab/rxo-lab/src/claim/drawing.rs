//! Figures as a book has them: what stands at each x, and the lines over it. The expressions in them are those of
//! `conclude`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The way in which a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shape {
    #[default]
    Line,
    /// Separate bars, for x values without an order.
    Bars,
    /// A part of the stack at each x.
    Stack,
    /// A box from the lower to the upper quartile, with whiskers to minimum and maximum.
    Boxes,
}

/// A figure over measured rows. Its words stand beside it in the book.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Drawing {
    pub(crate) number: String,
    /// Expressions that must have a value other than 0.
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    /// The fewest values of x that make a figure.
    #[serde(default)]
    pub(crate) least: usize,
    pub(crate) x: Vec<Column>,
    /// `true` if an x without a value of ours is left out.
    #[serde(default)]
    pub(crate) only_measured: bool,
    #[serde(default)]
    pub(crate) shape: Shape,
    pub(crate) series: Vec<Line>,
    /// The expression of each label of y; the first one with a value is chosen.
    #[serde(default)]
    pub(crate) y_labels: Vec<(String, String)>,
    /// The value of each guide, by its meaning.
    #[serde(default)]
    pub(crate) guides: BTreeMap<String, String>,
    /// The value up to which parts of a stack have a name, by that name.
    #[serde(default)]
    pub(crate) brackets: BTreeMap<String, String>,
    /// The template of the condition that invalid values violate.
    pub(crate) condition: Option<String>,
    /// The claims that the figure shows.
    #[serde(default)]
    pub(crate) claims: Vec<String>,
}

/// Values of x: a name, which is the variable `$x`, or one for each row, whose fields are variables.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Column {
    Name(String),
    Rows {
        /// The expression of the rows.
        rows: String,
        /// The template of the text at x.
        text: String,
    },
}

/// A series, or one for each name in `lines`, which is the variable `$line`, or for each of `rows`, whose fields are
/// variables.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    /// The name; with `lines` it may contain `{line}`, and with `rows` it is a template.
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) lines: Vec<String>,
    pub(crate) rows: Option<String>,
    /// The expression of the value at an x; of all samples there, for boxes.
    pub(crate) value: String,
    /// `true` if lines are drawn that are 0 everywhere.
    #[serde(default)]
    pub(crate) keeps_zeros: bool,
    /// An expression that is above 0 where the value is valid.
    pub(crate) valid: Option<String>,
    /// `true` for the paper's values, or a bound.
    #[serde(default, rename = "reference")]
    pub(crate) is_reference: bool,
    /// The shape, if it is not the figure's.
    pub(crate) shape: Option<Shape>,
    pub(crate) colour: Option<usize>,
}
