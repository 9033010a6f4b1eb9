//! The numbers that Python passes as arguments. A number that its argument cannot have is a `UsageError`, as every other
//! invalid value is; pyo3 alone raises `OverflowError`, which names no argument.

use std::ops::RangeInclusive;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::errors::usage;

/// The last argument of the methods of engines: a time in nanoseconds.
pub(crate) fn now_ns(given: &Bound<'_, PyAny>) -> PyResult<u64> {
    whole("now_ns", given, 0..=u64::MAX)
}

/// The argument `flows`: the number of flows that are listed.
pub(crate) fn flows(given: &Bound<'_, PyAny>) -> PyResult<usize> {
    // More flows than memory has room for are all flows.
    whole("flows", given, 0..=u64::MAX).map(|flows| usize::try_from(flows).unwrap_or(usize::MAX))
}

/// The argument `batch`: the greatest number of frames in a poll.
pub(crate) fn batch(given: &Bound<'_, PyAny>) -> PyResult<usize> {
    // The engine has the same limit, under the name of its own field.
    const MOST_FRAMES: u64 = 32_768;
    whole("batch", given, 1..=MOST_FRAMES).map(|frames| frames as usize)
}

/// The argument `window_mb`, in megabytes.
pub(crate) fn window_mb(given: &Bound<'_, PyAny>) -> PyResult<usize> {
    const MOST_MB: u64 = 1 << 20;
    whole("window_mb", given, 1..=MOST_MB).map(|megabytes| megabytes as usize)
}

/// The argument `part`: the number of the part, and the number of parts. The caller compares them.
pub(crate) fn part(given: &Bound<'_, PyAny>) -> PyResult<Option<(i64, i64)>> {
    given.extract().map_err(refused(given, || bad_part(given)))
}

/// The argument `place`: the series, the number of the file in it, and the number of files. The caller compares the latter.
pub(crate) fn place(given: &Bound<'_, PyAny>) -> PyResult<Option<(u64, i64, i64)>> {
    given.extract().map_err(refused(given, || bad_place(given)))
}

/// The argument `rate`, in Gbit/s.
pub(crate) fn rate(given: &Bound<'_, PyAny>) -> PyResult<f64> {
    /// The greatest rate, which is that of the command.
    const MOST_GBIT_PER_S: f64 = 100_000.0;
    let invalid = || usage(format!("rate {given}: give a rate up to {MOST_GBIT_PER_S} Gbit/s"));
    let rate = given.extract().map_err(refused(given, invalid))?;
    if rate > 0.0 && rate <= MOST_GBIT_PER_S { Ok(rate) } else { Err(invalid()) }
}

/// Creates the exception for an argument `part` that names no part.
pub(crate) fn bad_part(given: impl std::fmt::Display) -> PyErr {
    usage(format!("part {given}: write (N, M) with N from 1 to M"))
}

/// Creates the exception for an argument `place` that names no place.
pub(crate) fn bad_place(given: impl std::fmt::Display) -> PyErr {
    usage(format!(
        "place {given}: write (SERIES, N, M) with N from 0 to M - 1, and SERIES from 0 to {}",
        u64::MAX
    ))
}

/// Returns the integer that `given` is.
///
/// # Errors
/// If it is not one of those that are `accepted` for the argument `name`, or no integer.
fn whole(name: &str, given: &Bound<'_, PyAny>, accepted: RangeInclusive<u64>) -> PyResult<u64> {
    let invalid = || {
        let (least, most) = (accepted.start(), accepted.end());
        usage(format!("{name} {given}: give {least} to {most}"))
    };
    let value = given.extract().map_err(refused(given, invalid))?;
    if accepted.contains(&value) { Ok(value) } else { Err(invalid()) }
}

/// Returns a function that replaces the error for a number which is too large or too small for its type by that of
/// `invalid`. Other errors, such as for a text in place of a number, stay.
fn refused(
    given: &Bound<'_, PyAny>,
    invalid: impl FnOnce() -> PyErr,
) -> impl FnOnce(PyErr) -> PyErr {
    let py = given.py();
    move |error| if error.is_instance_of::<PyOverflowError>(py) { invalid() } else { error }
}
