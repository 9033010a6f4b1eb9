//! A table in the making: columns with names and types, and the file they go into.

use std::io;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, TimestampNanosecondArray,
    UInt16Array, UInt64Array,
};
use arrow_schema::{Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::files;
use crate::report::Report;

/// Columns of one length.
#[derive(Default)]
pub(super) struct Table {
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
}

impl Table {
    pub(super) fn count(self, name: &str, values: impl Iterator<Item = u64>) -> Self {
        self.column(name, false, Arc::new(UInt64Array::from_iter_values(values)))
    }

    pub(super) fn number(self, name: &str, values: impl Iterator<Item = f64>) -> Self {
        self.column(name, false, Arc::new(Float64Array::from_iter_values(values)))
    }

    pub(super) fn flag(self, name: &str, values: impl Iterator<Item = bool>) -> Self {
        self.column(name, false, Arc::new(values.map(Some).collect::<BooleanArray>()))
    }

    pub(super) fn text<T: AsRef<str>>(self, name: &str, values: impl Iterator<Item = T>) -> Self {
        self.column(name, false, Arc::new(StringArray::from_iter_values(values)))
    }

    /// Text that may be missing.
    pub(super) fn some_text<T: AsRef<str>>(
        self,
        name: &str,
        values: impl Iterator<Item = Option<T>>,
    ) -> Self {
        self.column(name, true, Arc::new(values.collect::<StringArray>()))
    }

    /// Small numbers that may be missing.
    pub(super) fn some_small(self, name: &str, values: impl Iterator<Item = Option<u16>>) -> Self {
        self.column(name, true, Arc::new(values.collect::<UInt16Array>()))
    }

    /// Nanoseconds since 1970 UTC. Those beyond the year 2262, which nobody has captured in, are
    /// the last that there is.
    pub(super) fn instant(self, name: &str, values: impl Iterator<Item = u64>) -> Self {
        let values = values.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
        let array = TimestampNanosecondArray::from_iter_values(values).with_timezone("UTC");
        self.column(name, false, Arc::new(array))
    }

    fn column(mut self, name: &str, may_miss: bool, array: ArrayRef) -> Self {
        self.fields.push(Field::new(name, array.data_type().clone(), may_miss));
        self.columns.push(array);
        self
    }

    /// Writes it as a file of its own, whole or not at all.
    pub(super) fn write(self, report: &Report, path: &Path) -> io::Result<()> {
        let schema = Arc::new(Schema::new(self.fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), self.columns);
        let batch = batch.map_err(io::Error::other)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("rxo {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(origin(report)))
            .build();
        files::replace(path, |file| {
            let mut writer = ArrowWriter::try_new(file, schema, Some(properties))?;
            writer.write(&batch)?;
            writer.close()?;
            Ok(())
        })
    }
}

/// Where the rows come from, and whether they are all.
fn origin(report: &Report) -> Vec<KeyValue> {
    let sources = report.sources.iter().map(|source| source.name.as_str());
    vec![
        KeyValue::new("rxo.sources".to_owned(), sources.collect::<Vec<_>>().join("\n")),
        KeyValue::new("rxo.partial".to_owned(), report.partial.clone().unwrap_or_default()),
    ]
}
