//! Tables, figures and sections of the page, in the form that the template needs.

use super::prose::{Span, spans};
use crate::figure::{Draw, Size};

/// A section of the page: text, figures and tables.
pub(super) struct Section {
    /// The name of the section in links. The name is a constant of this crate, so it is not escaped.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// The text of the section, in paragraphs of a sentence or two. Commands are enclosed in backticks.
    pub(super) text: Vec<String>,
    /// The commands of the section that the reader can type, one per line.
    pub(super) code: Vec<String>,
    pub(super) drawings: Vec<Drawing>,
    pub(super) tables: Vec<Part>,
}

impl Section {
    /// Returns the text, each paragraph split into plain text and code.
    pub(super) fn prose(&self) -> Vec<Vec<Span>> {
        self.text.iter().map(|sentence| spans(sentence)).collect()
    }
}

/// A figure in two sizes. The page shows the size that fits the window.
pub(super) struct Drawing {
    pub(super) caption: String,
    pub(super) wide: String,
    pub(super) narrow: String,
}

/// A table of a section with its caption, either shown or collapsed.
pub(super) struct Part {
    pub(super) caption: String,
    /// `true` if the table is initially collapsed, because a figure shows its data.
    pub(super) behind_figure: bool,
    pub(super) table: Table,
}

/// A table: a head, and rows below it.
pub(super) struct Table {
    pub(super) head: Vec<Head>,
    pub(super) rows: Vec<TableRow>,
    pub(super) sortable: bool,
}

/// The head of a column.
pub(super) struct Head {
    pub(super) name: &'static str,
    pub(super) is_number: bool,
    /// `true` if the rows are initially in descending order of this column.
    pub(super) descending: bool,
}

pub(super) struct TableRow {
    pub(super) cells: Vec<Cell>,
}

pub(super) struct Cell {
    pub(super) text: String,
    /// The value by which the cell is sorted; NaN for text.
    pub(super) sort: f64,
}

impl Cell {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), sort: f64::NAN }
    }

    pub(super) fn number(text: impl Into<String>, sort: f64) -> Self {
        Self { text: text.into(), sort }
    }

    pub(super) fn is_number(&self) -> bool {
        !self.sort.is_nan()
    }
}

impl Table {
    /// Returns the style class for the layout in narrow windows: if a window is narrower than the columns
    /// need, each row becomes a block of its own.
    pub(super) fn class(&self) -> String {
        let cards = match self.head.len() {
            0..=3 => "",
            4..=7 => "cards",
            _ => "cards many",
        };
        let sortable = if self.sortable { "sortable " } else { "" };
        format!("{sortable}{cards}")
    }

    /// Returns the name of the column with this index; empty if there is none.
    pub(super) fn head_of(&self, column: &usize) -> &'static str {
        self.head.get(*column).map_or("", |head| head.name)
    }

    /// Creates a table. Columns whose heads begin with `#` contain numbers.
    pub(super) fn new(heads: &[&'static str], rows: Vec<Vec<Cell>>) -> Self {
        let head = heads.iter().map(|name| Head {
            name: name.trim_start_matches('#'),
            is_number: name.starts_with('#'),
            descending: false,
        });
        let rows = rows.into_iter().map(|cells| TableRow { cells }).collect();
        Self { head: head.collect(), rows, sortable: false }
    }

    /// Returns the table, made sortable. The rows are initially in descending order of `column`.
    pub(super) fn sortable(mut self, column: usize) -> Self {
        self.sortable = true;
        if let Some(head) = self.head.get_mut(column) {
            head.descending = true;
        }
        self
    }

    /// Returns the table with a caption, to be shown on the page.
    pub(super) fn shown(self, caption: impl Into<String>) -> Part {
        Part { caption: caption.into(), behind_figure: false, table: self }
    }

    /// Returns the table with a caption, initially collapsed, because a figure shows the same data.
    pub(super) fn behind(self, caption: impl Into<String>) -> Part {
        Part { caption: caption.into(), behind_figure: true, table: self }
    }
}

impl Drawing {
    pub(super) fn of(figure: &impl Draw) -> Self {
        Self::sized(figure, WIDE, NARROW)
    }

    /// Returns a drawing of small height, which fits on the first screen together with the headline figures.
    pub(super) fn low(figure: &impl Draw) -> Self {
        Self::sized(figure, LOW, LOW_NARROW)
    }

    fn sized(figure: &impl Draw, wide: Size, narrow: Size) -> Self {
        Self {
            caption: figure.title().to_owned(),
            wide: figure.draw(wide),
            narrow: figure.draw(narrow),
        }
    }
}

/// The size of a figure that is as wide as the page's column.
const WIDE: Size = Size { width: 900, height: 380 };
const NARROW: Size = Size { width: 360, height: 320 };
const LOW: Size = Size { width: 900, height: 250 };
const LOW_NARROW: Size = Size { width: 360, height: 240 };
