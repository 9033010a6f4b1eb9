//! System calls: those of the [`list`] stay allowed; every other one fails with `EPERM`, which kills nothing.
//!
//! The list names the allowed calls and not the refused ones, so that calls of newer kernels are refused.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod filter;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod list;

use crate::{ConfineError, Confinement};

/// Refuses every system call that `confinement` does not need, for this thread. Returns the number of calls that stay
/// allowed; `None` if the kernel has no filters.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) fn restrict(confinement: &Confinement) -> Result<Option<usize>, ConfineError> {
    filter::restrict(&list::rules(confinement))
}

/// Refuses nothing: nobody has tried which calls are needed on this processor.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn restrict(_: &Confinement) -> Result<Option<usize>, ConfineError> {
    Ok(None)
}
