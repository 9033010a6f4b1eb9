//! A report as Parquet tables, for whoever goes on computing: Spark, DuckDB, pandas, Polars.
//!
//! Three files in a folder, each written under another name first and whole when it has its own:
//!
//! * `flows.parquet`: a row for each flow of the report.
//! * `settings.parquet`: a row for the chosen policy and one for each point of a sweep.
//! * `reasons.parquet`: a row for each reason of each of those, by the row's number.
//!
//! Columns have their unit in their names (`_bytes`, `_ns`); what has none counts packets, or what
//! the name says. Times are in UTC. Columns have Parquet's logical types, which Arrow readers turn
//! into their own: `UInt64`, `UInt16`, `Float64`, `Boolean`, `Utf8`, `Timestamp(ns, "UTC")`. Arrow's
//! crates are not needed to write them and would triple what this costs to build.

mod flows;
mod reasons;
mod settings;
mod table;

use std::fs;
use std::io;
use std::iter;
use std::path::Path;

use crate::report::Report;

/// Writes the tables into `folder`, which is made if need be. Files of the same names are
/// replaced, one after the other.
///
/// # Errors
/// If the folder cannot be made or a file cannot be written; the message names the file.
pub fn write(report: &Report, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder).map_err(|error| named(folder, &error))?;
    let path = |name: &str| folder.join(name);
    let told = |path: &Path, result: io::Result<()>| result.map_err(|error| named(path, &error));
    let flows = path("flows.parquet");
    let mut parts = flows::parts(report);
    let first = parts.next().unwrap_or_else(|| flows::part(report, &[]));
    told(&flows, table::write(report, &flows, first, parts))?;
    let tables = [
        (path("settings.parquet"), settings::table(report)),
        (path("reasons.parquet"), reasons::table(report)),
    ];
    for (path, table) in tables {
        told(&path, table::write(report, &path, table, iter::empty()))?;
    }
    Ok(())
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
