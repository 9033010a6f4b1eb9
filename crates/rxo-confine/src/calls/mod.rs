//! System calls: those in [`list`] stay allowed; every other call fails with `EPERM`, which does not kill the
//! process.
//!
//! The list names the allowed calls instead of the refused ones, so that new calls of later kernels are
//! refused.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod filter;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod list;

use crate::{ConfineError, Confinement};

/// Refuses every system call that `confinement` does not need, for this thread. Returns the number of allowed
/// calls; `None` if the kernel has no filters.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) fn restrict(confinement: &Confinement) -> Result<Option<usize>, ConfineError> {
    filter::restrict(&list::rules(confinement))
}

/// Refuses nothing: the calls that are needed on this processor were never determined.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn restrict(_: &Confinement) -> Result<Option<usize>, ConfineError> {
    Ok(None)
}
