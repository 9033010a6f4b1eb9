//! A report as Arrow tables, which are the same in Parquet files, in Python, and for other readers.
//!
//! * [`flows()`]: a row for each flow.
//! * [`settings`]: a row for all settings that were tried together, the chosen ones first.
//! * [`reasons`]: a row for each reason of each row of [`settings`], with the number of that row.
//! * [`histograms`]: a row for each bucket of each histogram of each row of [`settings`].
//! * [`sources()`]: a row for each capture.
//! * [`Packets`]: a row for each packet of a capture, which no report has.
//!
//! Columns have their unit in their names (`_bytes`, `_ns`); a column without a unit counts packets, or the
//! things in its name. Times are in UTC. The columns and their types depend only on the version of rxo. All
//! functions allocate the whole table.

mod columns;
mod flows;
mod outcomes;
mod packets;
mod sources;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use crate::report::Report;

pub(crate) use self::flows::part;
pub use self::packets::Packets;

/// The result of making a table: the table, or an error that only a bug in this crate can cause, such as columns of
/// different lengths.
pub type Table = Result<RecordBatch, ArrowError>;

/// Returns a table with a row for each flow, in the report's order.
///
/// # Errors
/// Only if this crate has a bug.
///
/// # Examples
/// ```
/// use rxo_trace::report::Report;
///
/// let flows = rxo_trace::tables::flows(&Report::default())?;
/// assert_eq!(flows.num_rows(), 0);
/// assert!(flows.schema().index_of("protocol").is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn flows(report: &Report) -> Table {
    flows::part(report, &report.flows)
}

/// Returns a table with a row for the chosen settings, and one for every other combination that was tried.
///
/// # Errors
/// The errors of [`flows()`].
pub fn settings(report: &Report) -> Table {
    outcomes::settings(report)
}

/// Returns a table with a row for each reason of each row of [`settings`].
///
/// # Errors
/// The errors of [`flows()`].
pub fn reasons(report: &Report) -> Table {
    outcomes::reasons(report)
}

/// Returns a table with a row for each bucket, if it is not empty, of each histogram of each row of [`settings`].
///
/// # Errors
/// The errors of [`flows()`].
pub fn histograms(report: &Report) -> Table {
    outcomes::histograms(report)
}

/// Returns a table with a row for each capture.
///
/// # Errors
/// The errors of [`flows()`].
pub fn sources(report: &Report) -> Table {
    sources::table(report)
}
