//! Captures in the forms in which Python programs give them: a path, bytes, an open file, or a list of these.

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyList, PyTuple};
use rxo_capture::{Capture, CaptureError};
use rxo_trace::study::Slice;

/// The source of a capture.
#[derive(Debug)]
pub(crate) enum Input {
    /// The capture is a file.
    Path(PathBuf),
    /// The capture is a part of a file.
    Slice(Slice),
    /// The capture is in memory. A `bytes` object is read without a copy.
    Bytes(PyBackedBytes),
    /// The capture is read from an open binary file, or from any object with `read(size) -> bytes`.
    File(PythonFile),
}

impl Input {
    /// Returns the inputs in `captures`, which is one input, or a list or tuple of inputs. An exception that
    /// an open file raises is stored in `raised`.
    ///
    /// # Errors
    /// If an object cannot be a capture.
    pub(crate) fn all(captures: &Bound<'_, PyAny>, raised: &Raised) -> PyResult<Vec<Self>> {
        if captures.is_instance_of::<PyList>() || captures.is_instance_of::<PyTuple>() {
            captures.try_iter()?.map(|item| Self::one(&item?, raised)).collect()
        } else {
            Ok(vec![Self::one(captures, raised)?])
        }
    }

    /// Returns the input that `object` is.
    ///
    /// # Errors
    /// If `object` is neither a path nor bytes nor an open file.
    pub(crate) fn one(object: &Bound<'_, PyAny>, raised: &Raised) -> PyResult<Self> {
        if let Ok(bytes) = object.extract::<PyBackedBytes>() {
            return Ok(Self::Bytes(bytes));
        }
        if object.hasattr("read")? {
            return Ok(Self::File(PythonFile::new(object, raised)));
        }
        object.extract().map(Self::Path).map_err(|_| {
            let kind = object.get_type();
            PyTypeError::new_err(format!(
                "{kind} is no capture: give a path, bytes, or a file opened in mode 'rb'"
            ))
        })
    }

    /// Returns the name of the input, for messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Slice(slice) => slice.path.display().to_string(),
            Self::Bytes(_) => "<bytes>".to_owned(),
            Self::File(file) => file.name.clone(),
        }
    }

    /// Returns the path of the input; `None` if it has none.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Slice(slice) => Some(&slice.path),
            Self::Bytes(_) | Self::File(_) => None,
        }
    }

    /// Opens the capture.
    ///
    /// # Errors
    /// If the input cannot be opened, or is not a capture.
    pub(crate) fn open(self) -> Result<Capture, CaptureError> {
        let name = self.name();
        match self {
            Self::Path(path) => Capture::open(&path),
            Self::Slice(slice) => slice.open(),
            Self::Bytes(bytes) => Capture::from_reader(&name, Box::new(Cursor::new(bytes))),
            Self::File(file) => Capture::from_reader(&name, Box::new(file)),
        }
    }
}

/// The first exception that an open file raised. It comes from the Python program, not from the capture.
#[derive(Clone, Debug, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn keep(&self, error: PyErr) -> io::Error {
        let text = error.to_string();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        io::Error::other(text)
    }

    /// Forgets the stored exception if it is an `OSError`. Its text is that of the error of the capture.
    pub(crate) fn forget_os_error(&self) {
        let mut raised = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Python::attach(|py| raised.take_if(|error| error.is_instance_of::<PyOSError>(py)));
    }

    /// Returns the stored exception as an error, if there is one.
    ///
    /// # Errors
    /// The stored exception.
    pub(crate) fn result(&self) -> PyResult<()> {
        let raised = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.map_or(Ok(()), Err)
    }
}

/// A reader of a Python object. It takes the interpreter's lock once per piece.
#[derive(Debug)]
pub(crate) struct PythonFile {
    object: Py<PyAny>,
    name: String,
    raised: Raised,
    /// The last piece that Python returned, and the number of its bytes that were passed on.
    piece: Option<PyBackedBytes>,
    taken: usize,
}

/// The number of bytes that are requested from Python at once.
const PIECE_BYTES: usize = 1 << 20;

impl PythonFile {
    fn new(object: &Bound<'_, PyAny>, raised: &Raised) -> Self {
        let name = object.getattr("name").and_then(|name| name.extract());
        let name = name.unwrap_or_else(|_| "<file>".to_owned());
        let (object, raised) = (object.clone().unbind(), raised.clone());
        Self { object, name, raised, piece: None, taken: 0 }
    }

    fn rest(&self) -> &[u8] {
        self.piece.as_deref().and_then(|piece| piece.get(self.taken..)).unwrap_or_default()
    }
}

impl Read for PythonFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.rest().is_empty() {
            let read = |py: Python<'_>| -> PyResult<PyBackedBytes> {
                let piece = self.object.bind(py).call_method1("read", (PIECE_BYTES,))?;
                let kind = piece.get_type();
                piece.extract().map_err(|_| {
                    let name = &self.name;
                    PyTypeError::new_err(format!(
                        "{name}: read returned {kind}; give a file opened in mode 'rb'"
                    ))
                })
            };
            self.piece = Some(Python::attach(read).map_err(|error| self.raised.keep(error))?);
            self.taken = 0;
        }
        let rest = self.rest();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.taken += count;
        Ok(count)
    }
}
