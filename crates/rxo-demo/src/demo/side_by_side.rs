//! A table that compares ways to transfer the same bytes; both sides of the demo use it.

use rxo_console::table::Table;
use serde::Serialize;

use crate::experiment::Findings;

/// A way of the transfer, as a row of the table.
pub(super) trait Cells: Serialize {
    /// The column headings.
    const HEAD: &'static [&'static str];

    /// Returns the text of each column.
    fn cells(&self) -> Vec<String>;

    /// Returns `true` if every byte arrived as it was sent.
    fn is_intact(&self) -> bool;
}

/// A row for each way, the setup of the run, and a one-sentence conclusion.
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

/// Returns the text of the last column: whether the bytes arrived intact.
pub(super) fn verdict(is_intact: bool) -> String {
    if is_intact { "right" } else { "WRONG" }.to_owned()
}
