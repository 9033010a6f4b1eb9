//! Table that any Arrow reader accepts without a copy (the Arrow PyCapsule interface).

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader as _};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use rxo_trace::tables;

/// A table of Arrow columns.
///
/// Pass it to `polars.DataFrame`, `pyarrow.table` or `pandas.DataFrame.from_arrow`; DuckDB reads the result
/// of `pyarrow.table`. Nothing is copied.
#[pyclass(frozen, module = "rxo")]
pub(crate) struct Table(RecordBatch);

impl Table {
    /// Creates the table, or the exception for its error.
    ///
    /// # Errors
    /// If the table is invalid, which only a bug in rxo can cause.
    pub(crate) fn of(table: tables::Table) -> PyResult<Self> {
        table.map(Self).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

#[pymethods]
impl Table {
    /// The names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns the number of rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<rxo.Table: {} rows, {} columns>", self.0.num_rows(), self.0.num_columns())
    }

    /// Returns the table as an Arrow stream of one batch. Readers call this; the requested schema is ignored,
    /// as the protocol permits.
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
