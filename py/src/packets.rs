//! `rxo.packets`: the packets of captures as a stream of Arrow tables.
//!
//! A thread reads the captures ahead of the reader, because a reader may take the tables on any thread, and the
//! memory of a capture belongs to one.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use rxo_capture::{Capture, CaptureError};
use rxo_trace::tables;

use crate::errors::{internal, unreadable};

/// The number of finished tables that wait for the reader.
const AHEAD: usize = 1;

/// The packets of captures, as a stream of Arrow tables with a row for each packet: the result of `rxo.packets`.
///
/// Pass it to `pyarrow.RecordBatchReader.from_stream`, `polars.DataFrame` or any other reader of the Arrow PyCapsule
/// interface. Each reader begins with the first packet. The end of a damaged capture is an error of the
/// stream, after the packets before the damage.
#[pyclass(frozen, module = "rxo")]
pub(crate) struct Packets(Vec<PathBuf>);

#[pymethods]
impl Packets {
    /// Begins the stream of the packets of these files.
    #[new]
    fn new(files: Vec<PathBuf>) -> PyResult<Self> {
        // Opened here only so that a mistake in the name is reported at once. What is read from a pipe is gone.
        let is_pipe = |path: &PathBuf| path.metadata().is_ok_and(|data| data.file_type().is_fifo());
        if let Some(first) = files.first().filter(|first| !is_pipe(first)) {
            Capture::open(first).map_err(|error| unreadable(&error))?;
        }
        Ok(Self(files))
    }

    /// The names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let schema = tables::Packets::schema();
        schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __repr__(&self) -> String {
        format!("<rxo.Packets: {} files>", self.0.len())
    }

    /// Returns the Arrow stream. Readers call this; the requested schema is ignored, as the protocol permits.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let (to, tables) = mpsc::sync_channel(AHEAD);
        let files = self.0.clone();
        let thread = thread::Builder::new().name("rxo-packets".to_owned());
        thread.spawn(move || read(&files, &to)).map_err(internal)?;
        let stream = FFI_ArrowArrayStream::new(Box::new(Tables(tables)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

type Item = Result<RecordBatch, ArrowError>;

/// Reads the files in order, until the last ends, one is damaged, or nobody takes the tables any more.
fn read(files: &[PathBuf], to: &SyncSender<Item>) {
    for file in files {
        let mut packets = match Capture::open(file) {
            Ok(capture) => tables::Packets::new(capture),
            Err(error) => {
                // Without a reader nobody wants to know.
                _ = to.send(Err(damaged(&error)));
                return;
            }
        };
        loop {
            let item = match packets.next_table() {
                Ok(Some(table)) => table,
                Ok(None) => break,
                Err(error) => Err(damaged(&error)),
            };
            let is_last = item.is_err();
            if to.send(item).is_err() || is_last {
                return;
            }
        }
    }
}

/// Returns the error for a reader, which becomes an `OSError` in most.
fn damaged(error: &CaptureError) -> ArrowError {
    ArrowError::IoError(error.to_string(), io::Error::other("the capture cannot be read"))
}

/// The tables from the reading thread, as the reader takes them.
struct Tables(Receiver<Item>);

impl Iterator for Tables {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        self.0.recv().ok()
    }
}

impl RecordBatchReader for Tables {
    fn schema(&self) -> SchemaRef {
        tables::Packets::schema()
    }
}
