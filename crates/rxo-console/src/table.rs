//! Plain text tables: a header row, rows, and columns as wide as their longest cell.

use std::fmt::Write;

/// A text table. The first column is left-aligned; columns of numbers are right-aligned.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates an empty table with the column headers `head`.
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|&text| text.to_owned()).collect()] }
    }

    /// Adds a row to the table. Missing cells stay empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Renders the table as text, without a line end after the last row.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(|column| self.width(column)).collect();
        let right: Vec<bool> = (0..columns).map(|column| self.is_numeric(column)).collect();
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let gap = if column == 0 { "" } else { "  " };
                let width = widths[column];
                // Writing to a `String` cannot fail.
                _ = if right[column] {
                    write!(line, "{gap}{cell:>width$}")
                } else {
                    write!(line, "{gap}{cell:<width$}")
                };
            }
            text.push_str(if index == 0 { "" } else { "\n" });
            text.push_str(line.trim_end());
        }
        text
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    /// Returns `true` if every cell of `column` below the header is a number, or `-` for a missing number.
    /// The first column contains row names and is never numeric.
    fn is_numeric(&self, column: usize) -> bool {
        if column == 0 {
            return false;
        }
        let mut cells = self.rows.iter().skip(1).filter_map(|row| row.get(column));
        cells.all(|cell| cell == "-" || cell.starts_with(|c: char| c.is_ascii_digit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new(&["policy", "flows", "paper"]);
        table.row(["linux-gro".into(), "64".into(), "Linux".into()]);
        table.row(["none".into(), "-".into(), "the baseline".into()]);
        let expected = "policy     flows  paper\n\
                        linux-gro     64  Linux\n\
                        none           -  the baseline";
        assert_eq!(table.render(), expected);
    }
}
