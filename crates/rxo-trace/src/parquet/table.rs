//! An unfinished table: columns with names and types, and the file that they are written to.

use std::fs::File;
use std::io;
use std::iter;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Stored};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use rxo_console::files;

use crate::report::Report;

/// Columns of one length.
#[derive(Default)]
pub(super) struct Table {
    columns: Vec<Column>,
}

struct Column {
    name: String,
    logical: Option<LogicalType>,
    values: Values,
    /// For each row, whether it has a value (1) or not (0); `None` if every row must have one.
    present: Option<Vec<i16>>,
}

/// Values in their stored form.
enum Values {
    Long(Vec<i64>),
    Small(Vec<i32>),
    Number(Vec<f64>),
    Flag(Vec<bool>),
    Text(Vec<ByteArray>),
}

impl Table {
    pub(super) fn count(self, name: &str, values: impl Iterator<Item = u64>) -> Self {
        // Stored as the same 64 bits. The logical type says that they are unsigned.
        let values = Values::Long(values.map(u64::cast_signed).collect());
        self.column(name, Some(LogicalType::integer(64, false)), values)
    }

    pub(super) fn number(self, name: &str, values: impl Iterator<Item = f64>) -> Self {
        self.column(name, None, Values::Number(values.collect()))
    }

    pub(super) fn flag(self, name: &str, values: impl Iterator<Item = bool>) -> Self {
        self.column(name, None, Values::Flag(values.collect()))
    }

    pub(super) fn text<T: AsRef<str>>(self, name: &str, values: impl Iterator<Item = T>) -> Self {
        let values = Values::Text(values.map(|text| ByteArray::from(text.as_ref())).collect());
        self.column(name, Some(LogicalType::String), values)
    }

    /// Adds a column of text with missing values.
    pub(super) fn some_text<T: AsRef<str>>(
        self,
        name: &str,
        values: impl Iterator<Item = Option<T>>,
    ) -> Self {
        let (present, values) = split(values);
        let values = values.iter().map(|text| ByteArray::from(text.as_ref()));
        let values = Values::Text(values.collect());
        self.column_with_gaps(name, LogicalType::String, values, present)
    }

    /// Adds a column of small numbers with missing values.
    pub(super) fn some_small(self, name: &str, values: impl Iterator<Item = Option<u16>>) -> Self {
        let (present, values) = split(values);
        let values = Values::Small(values.into_iter().map(i32::from).collect());
        self.column_with_gaps(name, LogicalType::integer(16, false), values, present)
    }

    /// Adds a column of nanoseconds since 1970 UTC. Times after the year 2262 become the latest
    /// possible one.
    pub(super) fn instant(self, name: &str, values: impl Iterator<Item = u64>) -> Self {
        let values = values.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
        let logical = LogicalType::timestamp(true, TimeUnit::NANOS);
        self.column(name, Some(logical), Values::Long(values.collect()))
    }

    fn schema(&self) -> Result<TypePtr> {
        let fields = self.columns.iter().map(Column::field).collect::<Result<_>>()?;
        Ok(Arc::new(Type::group_type_builder("rxo").with_fields(fields).build()?))
    }

    fn column(mut self, name: &str, logical: Option<LogicalType>, values: Values) -> Self {
        self.columns.push(Column { name: name.to_owned(), logical, values, present: None });
        self
    }

    fn column_with_gaps(
        mut self,
        name: &str,
        logical: LogicalType,
        values: Values,
        present: Vec<i16>,
    ) -> Self {
        let (name, logical, present) = (name.to_owned(), Some(logical), Some(present));
        self.columns.push(Column { name, logical, values, present });
        self
    }
}

/// Writes a table as a file, completely or not at all. Its parts have the same columns. Each part
/// is made after the previous one is written, so a large table needs the memory of one part.
pub(super) fn write(
    report: &Report,
    path: &Path,
    first: Table,
    others: impl Iterator<Item = Table>,
) -> io::Result<()> {
    files::replace(path, |file| Ok(fill(report, file, first, others)?))
}

fn fill(
    report: &Report,
    file: &mut File,
    first: Table,
    others: impl Iterator<Item = Table>,
) -> Result<()> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("rxo version {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(origin(report)))
        .build();
    let mut writer = SerializedFileWriter::new(file, first.schema()?, Arc::new(properties))?;
    for part in iter::once(first).chain(others) {
        let mut rows = writer.next_row_group()?;
        for column in &part.columns {
            column.write(&mut rows)?;
        }
        rows.close()?;
    }
    writer.close()?;
    Ok(())
}

impl Column {
    fn field(&self) -> Result<TypePtr> {
        let stored = match self.values {
            Values::Long(_) => Stored::INT64,
            Values::Small(_) => Stored::INT32,
            Values::Number(_) => Stored::DOUBLE,
            Values::Flag(_) => Stored::BOOLEAN,
            Values::Text(_) => Stored::BYTE_ARRAY,
        };
        let needed =
            if self.present.is_some() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(&self.name, stored)
            .with_logical_type(self.logical.clone())
            .with_repetition(needed);
        Ok(Arc::new(field.build()?))
    }

    fn write(&self, rows: &mut SerializedRowGroupWriter<'_, &mut File>) -> Result<()> {
        match &self.values {
            Values::Long(values) => self.write_as::<Int64Type>(rows, values),
            Values::Small(values) => self.write_as::<Int32Type>(rows, values),
            Values::Number(values) => self.write_as::<DoubleType>(rows, values),
            Values::Flag(values) => self.write_as::<BoolType>(rows, values),
            Values::Text(values) => self.write_as::<ByteArrayType>(rows, values),
        }
    }

    fn write_as<T: DataType>(
        &self,
        rows: &mut SerializedRowGroupWriter<'_, &mut File>,
        values: &[T::T],
    ) -> Result<()> {
        // The file has as many columns as the table, in the same order.
        let Some(mut column) = rows.next_column()? else { return Ok(()) };
        column.typed::<T>().write_batch(values, self.present.as_deref(), None)?;
        column.close()
    }
}

/// Splits into flags for the rows that have a value, and the values.
fn split<T>(values: impl Iterator<Item = Option<T>>) -> (Vec<i16>, Vec<T>) {
    let mut there = Vec::new();
    let present = values.map(|value| {
        let is_there = i16::from(value.is_some());
        there.extend(value);
        is_there
    });
    let present = present.collect();
    (present, there)
}

/// Metadata: where the rows come from, and whether they are complete.
fn origin(report: &Report) -> Vec<KeyValue> {
    let sources = report.sources.iter().map(|source| source.name.as_str());
    vec![
        KeyValue::new("rxo.sources".to_owned(), sources.collect::<Vec<_>>().join("\n")),
        KeyValue::new("rxo.partial".to_owned(), report.partial.clone().unwrap_or_default()),
    ]
}
