//! A report as Parquet tables, for Spark, DuckDB, pandas, Polars and others.
//!
//! Three files in a folder, each written under a temporary name and renamed when complete:
//!
//! * `flows.parquet`: a row for each flow.
//! * `settings.parquet`: a row for the chosen policy, and one for each point of a sweep.
//! * `reasons.parquet`: a row for each reason of each of those rows, by row number.
//!
//! Columns have their unit in their names (`_bytes`, `_ns`); a column without one counts packets,
//! or what its name says. Times are in UTC. Columns have Parquet's logical types, which Arrow
//! readers convert to their own: `UInt64`, `UInt16`, `Float64`, `Boolean`, `Utf8`, `Timestamp(ns,
//! "UTC")`. Writing them does not need Arrow's crates, which would triple the build time.

mod flows;
mod reasons;
mod settings;
mod table;

use std::fs;
use std::io;
use std::iter;
use std::path::Path;

use crate::report::Report;

/// Writes the tables into `folder`, which is created if necessary. Existing files are replaced one
/// by one.
///
/// # Errors
/// If the folder cannot be created or a file cannot be written. The message names the file.
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
