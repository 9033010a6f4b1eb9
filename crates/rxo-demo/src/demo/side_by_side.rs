//! Ways to transfer the same bytes, side by side: what the demo of either side shows.

use rxo_console::table::Table;
use serde::Serialize;

use crate::experiment::Findings;

/// One way, as a row of the table.
pub(super) trait Cells: Serialize {
    /// The heads of the columns.
    const HEAD: &'static [&'static str];

    /// The text of each column.
    fn cells(&self) -> Vec<String>;

    /// Whether every byte arrived as it was sent.
    fn is_intact(&self) -> bool;
}

/// A row for each way, the setup that was measured, and what follows in one sentence.
#[derive(Debug, Serialize)]
pub(crate) struct SideBySide<R, S> {
    pub(super) rows: Vec<R>,
    pub(super) setup: S,
    /// `None` on a busy machine.
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

/// Whether the bytes are right, for the last column.
pub(super) fn verdict(is_intact: bool) -> String {
    if is_intact { "right" } else { "WRONG" }.to_owned()
}
