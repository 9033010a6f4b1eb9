//! The exceptions. Their classes are written in Python (`rxo/_errors.py`), because some have two bases.

use std::io;
use std::path::Path;

use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use rxo_capture::{CaptureError, Fault};

/// Creates the exception for an invalid argument. `message` says what would be accepted.
pub(crate) fn usage(message: impl Into<String>) -> PyErr {
    raise("UsageError", (message.into(),))
}

/// Creates the exception for a capture that cannot be read: of the kind of the system's error, or that of a
/// damaged capture.
pub(crate) fn unreadable(error: &CaptureError) -> PyErr {
    let (is_damaged, number) = match error.fault() {
        Fault::Open(error) | Fault::Read(error) => (false, error.raw_os_error()),
        Fault::Foreign(_) | Fault::Truncated(_) | Fault::Damaged(_) | Fault::Unsupported(_) => {
            (true, None)
        }
    };
    raise("of_file", (error.to_string(), error.file(), number, is_damaged))
}

/// Creates the exception for a file that cannot be written.
pub(crate) fn unwritable(path: &Path, error: &io::Error, message: String) -> PyErr {
    raise("of_file", (message, path.display().to_string(), error.raw_os_error(), false))
}

/// Creates the exception for a file whose contents cannot be used.
pub(crate) fn of_file(name: &str, message: String) -> PyErr {
    raise("of_file", (message, name, None::<i32>, false))
}

/// Creates the exception for an error that only a bug in rxo can cause.
pub(crate) fn internal(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Warns that a result is incomplete.
///
/// # Errors
/// If the program turned warnings into exceptions.
pub(crate) fn warn_partial(py: Python<'_>, why: &str) -> PyResult<()> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, MODULE, "PartialWarning")?;
    py.import("warnings")?.call_method1("warn", (why, class, CALLER))?;
    Ok(())
}

/// Creates the exception that `rxo._errors.<name>` returns for `arguments`; if it cannot be called, its error.
fn raise<A>(name: &str, arguments: A) -> PyErr
where
    A: for<'py> PyCallArgs<'py>,
{
    Python::attach(|py| {
        let made = py.import(MODULE).and_then(|module| module.getattr(name)?.call1(arguments));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

const MODULE: &str = "rxo._errors";

/// The stack level of the warning: it names the line that called the package's function, which called this
/// module.
const CALLER: u32 = 2;
