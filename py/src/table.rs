//! Table that any Arrow reader accepts without a copy (the Arrow PyCapsule interface), and that a program without
//! such a reader can use by rows and columns.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader as _};
use pyo3::exceptions::{PyImportError, PyIndexError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PySlice};
use rxo_trace::tables;

use crate::cells::Cell;
use crate::errors::internal;

/// A table of Arrow columns.
///
/// Pass it to `polars.DataFrame`, `pyarrow.table` or `pandas.DataFrame.from_arrow`; DuckDB reads the result
/// of `pyarrow.table`. Nothing is copied. Without any of these, `table["packets"]` is a column as a list,
/// `table[0]` a row as a dictionary, and `table[:5]` a table of some rows.
#[pyclass(frozen, module = "rxo")]
pub(crate) struct Table(RecordBatch);

impl Table {
    /// Creates the table, or the exception for its error.
    ///
    /// # Errors
    /// If the table is invalid, which only a bug in rxo can cause.
    pub(crate) fn of(table: tables::Table) -> PyResult<Self> {
        table.map(Self).map_err(internal)
    }

    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let column = self.0.column_by_name(name).ok_or_else(|| {
            PyKeyError::new_err(format!("no column {name:?}: {}", self.column_names().join(", ")))
        })?;
        let values = (0..self.0.num_rows()).map(|row| Cell::of(column, row).object(py));
        let values = values.collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, values)?.into_any())
    }

    fn row<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.0.num_rows();
        let from_end = if index < 0 { rows.cast_signed() } else { 0 };
        let row = usize::try_from(index + from_end).ok().filter(|row| *row < rows);
        let row = row.ok_or_else(|| PyIndexError::new_err(format!("row {index} of {rows}")))?;
        let values = PyDict::new(py);
        for (field, column) in self.0.schema_ref().fields().iter().zip(self.0.columns()) {
            values.set_item(field.name(), Cell::of(column, row).object(py)?)?;
        }
        Ok(values.into_any())
    }

    fn slice<'py>(
        &self,
        py: Python<'py>,
        slice: &Bound<'py, PySlice>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = slice.indices(self.0.num_rows().cast_signed())?;
        if found.step != 1 {
            return Err(PyValueError::new_err("rows: a slice of a table has the step 1"));
        }
        let rows = self.0.slice(found.start.cast_unsigned(), found.slicelength);
        Ok(Bound::new(py, Self(rows))?.into_any())
    }
}

/// The index between the brackets behind a table.
#[derive(FromPyObject)]
enum Key<'py> {
    /// The name of a column.
    Column(String),
    /// The index of a row; negative from the end.
    Row(isize),
    /// Neighbouring rows.
    Slice(Bound<'py, PySlice>),
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

    /// Returns a column as a list, a row as a dictionary, or a table of neighbouring rows.
    fn __getitem__<'py>(&self, py: Python<'py>, key: Key<'py>) -> PyResult<Bound<'py, PyAny>> {
        match key {
            Key::Column(name) => self.column(py, &name),
            Key::Row(index) => self.row(py, index),
            Key::Slice(slice) => self.slice(py, &slice),
        }
    }

    fn __repr__(&self) -> String {
        format!("<rxo.Table: {} rows, {} columns>", self.0.num_rows(), self.0.num_columns())
    }

    /// Shows the first rows in a notebook.
    fn _repr_html_(&self) -> String {
        let rows = self.0.num_rows();
        let shown = rows.min(SHOWN_ROWS);
        let fields = self.0.schema_ref().fields();
        let heads: String = fields.iter().map(|it| format!("<th>{}</th>", it.name())).collect();
        let mut body = String::new();
        for row in 0..shown {
            let cells = self.0.columns().iter().map(|column| Cell::of(column, row).html());
            body += &format!("<tr>{}</tr>\n", cells.collect::<String>());
        }
        let rest = if shown < rows { format!("the first {shown} of ") } else { String::new() };
        format!(
            "<div style=\"overflow-x:auto\"><table>\n<thead><tr>{heads}</tr></thead>\n\
             <tbody>\n{body}</tbody></table></div>\n<p>{rest}{rows} rows, {} columns</p>",
            fields.len()
        )
    }

    /// Returns the table as a pandas data frame. Needs pandas and pyarrow.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        arrow(slf, "to_pandas")?.call_method0("to_pandas")
    }

    /// Returns the table by the data frame interchange protocol. Needs pyarrow.
    #[pyo3(signature = (nan_as_null=false, allow_copy=true))]
    fn __dataframe__<'py>(
        slf: &Bound<'py, Self>,
        nan_as_null: bool,
        allow_copy: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        arrow(slf, "__dataframe__")?.call_method1("__dataframe__", (nan_as_null, allow_copy))
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

/// The number of rows that a notebook shows.
const SHOWN_ROWS: usize = 10;

/// Returns the table as one of pyarrow, which `method` needs.
fn arrow<'py>(table: &Bound<'py, Table>, method: &str) -> PyResult<Bound<'py, PyAny>> {
    let pyarrow = table.py().import("pyarrow").map_err(|_| {
        PyImportError::new_err(format!("{method} needs pyarrow: pip install pyarrow pandas"))
    })?;
    pyarrow.call_method1("table", (table,))
}
