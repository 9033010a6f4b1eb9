//! The paper's figures and its table, made from rows, with the paper's statements.

mod connections;
mod exchange;
mod limit;
mod profile;
mod throughput;

use super::row::Rows;
use super::units::Units;
use crate::figure::Figure;

/// Returns the figures that the measured rows permit.
pub(super) fn all(rows: Rows<'_>, units: Units) -> Vec<Figure> {
    let all = [
        profile::figure_3(rows),
        throughput::figure_7(rows),
        profile::figure_8(rows, units),
        profile::figure_9(rows, units),
        profile::figure_10(rows, units),
        limit::figure_11(rows, units),
        connections::figure_12(rows),
        exchange::table_1(rows),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
