//! The table of `rxo demo` and `rxo demo --reverse`, which compares several ways to transfer the same bytes.

use rxo_console::table::Table;
use serde::Serialize;

use crate::experiment::Findings;

/// A row of the table, for one way to transfer the bytes.
pub(super) trait Cells: Serialize {
    /// The headings of the table's columns.
    const HEAD: &'static [&'static str];

    /// Returns the contents of the table cells in this row, one string for each column.
    fn cells(&self) -> Vec<String>;

    /// Returns `true` if every byte of the transfers in this row arrived as it was sent.
    fn is_intact(&self) -> bool;
}

/// A comparison: a row for each way to transfer, the settings of the run, and a conclusion in one sentence.
#[derive(Debug, Serialize)]
pub(crate) struct SideBySide<R, S> {
    pub(super) rows: Vec<R>,
    pub(super) setup: S,
    /// The conclusion; `None` if the machine was too busy for a verdict.
    pub(super) sentence: Option<String>,
}

impl<R: Cells, S: Serialize> Findings for SideBySide<R, S> {
    fn paragraphs(&self) -> Vec<String> {
        let mut table = Table::new(R::HEAD);
        self.rows.iter().for_each(|row| table.row(row.cells()));
        vec![table.render()]
    }

    fn withhold(&mut self) {
        self.sentence = None;
    }

    fn conclusion(&self) -> Option<String> {
        self.sentence.clone()
    }

    fn is_intact(&self) -> bool {
        self.rows.iter().all(R::is_intact)
    }
}

/// Returns the content of the last column, which states whether all bytes arrived unchanged.
pub(super) fn verdict(is_intact: bool) -> String {
    if is_intact { "right" } else { "WRONG" }.to_owned()
}
