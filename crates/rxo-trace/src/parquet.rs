//! Writes a report as Parquet files, for Spark, DuckDB, pandas, Polars and other programs.
//!
//! Each table of [`crate::tables`] becomes a folder with the name of the table, which contains one file.
//! Programs that read data sets treat a folder as one table. A file is written under a temporary name and
//! renamed when it is complete. The metadata of a file contains the origin of its rows, and a note if the rows
//! are incomplete.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use rxo_console::files;

use crate::report::{FlowReport, Report};
use crate::tables::{self, Table};

/// The maximum number of flow rows in memory at a time. These rows become a row group, which is large enough to
/// make skipping row groups worthwhile for readers.
const PART_ROWS: usize = 65_536;

/// The name of the file in the folder of each table.
const FILE: &str = "part-0.parquet";

/// Writes each table into a folder of its name below `folder`. Folders are created if necessary; existing files are
/// replaced one by one.
///
/// # Errors
/// If a folder cannot be created or a file cannot be written. The message names the file.
///
/// # Examples
/// ```
/// use rxo_trace::parquet;
/// use rxo_trace::report::Report;
///
/// let folder = std::env::temp_dir().join(format!("rxo-tables-{}", std::process::id()));
/// parquet::write(&Report::default(), &folder)?;
/// assert!(folder.join("flows/part-0.parquet").exists());
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write(report: &Report, folder: &Path) -> io::Result<()> {
    // Without flows, the first part is empty, so that the table exists and has all columns.
    let first = report.flows.chunks(PART_ROWS).next().unwrap_or_default();
    let later = report.flows.chunks(PART_ROWS).skip(1);
    let part = |flows: &[FlowReport]| tables::part(report, flows);
    table(report, folder, "flows", part(first), later.map(part))?;
    for (name, rows) in [
        ("settings", tables::settings(report)),
        ("reasons", tables::reasons(report)),
        ("histograms", tables::histograms(report)),
        ("sources", tables::sources(report)),
    ] {
        table(report, folder, name, rows, std::iter::empty())?;
    }
    Ok(())
}

/// Writes a table as a file, completely or not at all. Each part of the table is created after the previous
/// part was written.
fn table(
    report: &Report,
    folder: &Path,
    name: &str,
    first: Table,
    later: impl Iterator<Item = Table>,
) -> io::Result<()> {
    let folder = folder.join(name);
    fs::create_dir_all(&folder).map_err(|error| named(&folder, &error))?;
    let path = folder.join(FILE);
    let first = first.map_err(io::Error::other)?;
    files::replace(&path, |file| Ok(fill(report, file, &first, later)?))
        .map_err(|error| named(&path, &error))
}

fn fill(
    report: &Report,
    file: &mut File,
    first: &RecordBatch,
    later: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
) -> Result<(), ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("rxo version {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(origin(report)))
        .build();
    let mut writer = ArrowWriter::try_new(file, first.schema(), Some(properties))?;
    writer.write(first)?;
    for part in later {
        writer.flush()?;
        writer.write(&part?)?;
    }
    writer.close()?;
    Ok(())
}

/// Returns the metadata of a file: the origin of its rows, and the reason if the rows are incomplete.
fn origin(report: &Report) -> Vec<KeyValue> {
    let sources = report.sources.iter().map(|source| source.name.as_str());
    vec![
        KeyValue::new("rxo.sources".to_owned(), sources.collect::<Vec<_>>().join("\n")),
        KeyValue::new("rxo.partial".to_owned(), report.partial.clone().unwrap_or_default()),
    ]
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
