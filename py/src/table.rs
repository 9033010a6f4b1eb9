//! A table that any Arrow reader takes without a copy (the Arrow PyCapsule interface).

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, TimestampNanosecondType, UInt16Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_array::{RecordBatchIterator, RecordBatchReader as _};
use arrow_schema::{ArrowError, Field, Schema};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A table of Arrow columns.
///
/// Give it to `polars.DataFrame`, `pyarrow.table` or `pandas.DataFrame.from_arrow`; DuckDB reads the result of `pyarrow.table`.
/// Nothing is copied.
#[pyclass(frozen, module = "rxo")]
pub(crate) struct Table(RecordBatch);

#[pymethods]
impl Table {
    /// The columns' names, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<rxo.Table: {} rows, {} columns>", self.0.num_rows(), self.0.num_columns())
    }

    /// The table as an Arrow stream of one batch. Readers call this; the requested schema is ignored,
    /// which the protocol allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = [Ok(self.0.clone())];
        let reader = RecordBatchIterator::new(batches, self.0.schema());
        debug_assert_eq!(reader.schema(), self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// An unfinished table.
#[derive(Default)]
pub(crate) struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    pub(crate) fn count(self, name: &str, values: impl Iterator<Item = u64>) -> Self {
        self.column(name, PrimitiveArray::<UInt64Type>::from_iter_values(values), false)
    }

    pub(crate) fn number(self, name: &str, values: impl Iterator<Item = f64>) -> Self {
        self.column(name, PrimitiveArray::<Float64Type>::from_iter_values(values), false)
    }

    pub(crate) fn flag(self, name: &str, values: impl Iterator<Item = bool>) -> Self {
        self.column(name, values.map(Some).collect::<BooleanArray>(), false)
    }

    pub(crate) fn text<T: AsRef<str>>(self, name: &str, values: impl Iterator<Item = T>) -> Self {
        self.column(name, StringArray::from_iter_values(values), false)
    }

    pub(crate) fn some_text<T: AsRef<str>>(
        self,
        name: &str,
        values: impl Iterator<Item = Option<T>>,
    ) -> Self {
        self.column(name, values.collect::<StringArray>(), true)
    }

    pub(crate) fn some_small(self, name: &str, values: impl Iterator<Item = Option<u16>>) -> Self {
        self.column(name, values.collect::<PrimitiveArray<UInt16Type>>(), true)
    }

    /// Adds a column of nanoseconds since 1970 UTC. Times after the year 2262 become the latest
    /// possible one.
    pub(crate) fn instant(self, name: &str, values: impl Iterator<Item = u64>) -> Self {
        let values = values.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
        let values = PrimitiveArray::<TimestampNanosecondType>::from_iter_values(values);
        self.column(name, values.with_timezone("UTC"), false)
    }

    fn column(mut self, name: &str, values: impl Array + 'static, has_gaps: bool) -> Self {
        self.fields.push(Field::new(name, values.data_type().clone(), has_gaps));
        self.arrays.push(Arc::new(values));
        self
    }

    /// # Errors
    /// If the columns differ in length, which would be a mistake in this package.
    pub(crate) fn finish(self) -> PyResult<Table> {
        let schema = Arc::new(Schema::new(self.fields));
        let batch = RecordBatch::try_new(schema, self.arrays);
        batch.map(Table).map_err(|error: ArrowError| PyRuntimeError::new_err(error.to_string()))
    }
}
