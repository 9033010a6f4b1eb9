//! Converts a report to Arrow tables. The tables are the same in Parquet files, in Python, and for other
//! readers.
//!
//! * [`flows()`]: a row for each flow.
//! * [`settings`]: a row for each combination of settings that was tried, the chosen combination first.
//! * [`reasons`]: a row for each reason of each row of [`settings`], with the number of the row in
//!   [`settings`].
//! * [`histograms`]: a row for each bucket of each histogram of each row of [`settings`].
//! * [`sources()`]: a row for each capture.
//! * [`Packets`]: a row for each packet of a capture. A report does not contain packets.
//!
//! Columns have their unit in their names (`_bytes`, `_ns`); a column without a unit counts packets, or the
//! objects in its name. Times are in UTC. The columns and their types depend only on the version of rxo. All
//! functions allocate the whole table.

mod columns;
mod flows;
mod outcomes;
mod packets;
mod sources;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

pub use self::flows::flows;
pub(crate) use self::flows::part;
pub use self::outcomes::{histograms, reasons, settings};
pub use self::packets::Packets;
pub use self::sources::sources;

/// The result of creating a table: the table, or an error that only a bug in this crate can cause, such as
/// columns of different lengths.
pub type Table = Result<RecordBatch, ArrowError>;
