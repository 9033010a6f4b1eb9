//! The exceptions. Their classes are written in Python (`rxo/_errors.py`), because some have two bases.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// Creates the exception for an invalid argument. `message` says what would be accepted.
pub(crate) fn usage(message: impl Into<String>) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    raise(&CLASS, "UsageError", message.into())
}

/// Creates the exception for a capture that cannot be read, or a file that cannot be written.
pub(crate) fn capture(message: impl Into<String>) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    raise(&CLASS, "CaptureError", message.into())
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

/// Creates an exception of the class `name` with `message`; if the class cannot be imported, the import
/// error.
fn raise(class: &'static PyOnceLock<Py<PyType>>, name: &str, message: String) -> PyErr {
    Python::attach(|py| match class.import(py, MODULE, name) {
        Ok(class) => PyErr::from_type(class.clone(), message),
        Err(error) => error,
    })
}

const MODULE: &str = "rxo._errors";

/// The stack level of the warning: it names the line that called the package's function, which called this
/// module.
const CALLER: u32 = 2;
