//! Restricts system calls: the calls in [`list`] stay allowed. Every other call fails with `EPERM`, without
//! killing the process.
//!
//! The list contains the allowed calls instead of the refused ones, so that new calls of later kernels are
//! refused.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod filter;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod list;

use crate::{ConfineError, Confinement};

/// Refuses every system call that `confinement` does not need, for this thread. Returns the number of system
/// calls that stay allowed; `None` if the kernel does not support seccomp filters.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) fn restrict(confinement: &Confinement) -> Result<Option<usize>, ConfineError> {
    filter::restrict(&list::rules(confinement))
}

/// Refuses no system call and returns `None`: the calls that rxo needs on this processor architecture were
/// never determined.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn restrict(_: &Confinement) -> Result<Option<usize>, ConfineError> {
    Ok(None)
}
