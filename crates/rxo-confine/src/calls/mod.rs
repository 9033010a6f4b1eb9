//! System calls: those of the [`list`] stay, every other one fails with `EPERM`, which kills nothing.
//!
//! A list of what stays, and not of what goes: a call of a newer kernel is refused before anybody here has heard of it.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod filter;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod list;

use crate::{ConfineError, Confinement};

/// Refuses every call that `confinement` does not need, for this thread. Returns how many are left; `None` if the
/// kernel has no filters.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) fn restrict(confinement: &Confinement) -> Result<Option<usize>, ConfineError> {
    filter::restrict(&list::rules(confinement))
}

/// On this processor nobody has tried which calls are needed.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn restrict(_: &Confinement) -> Result<Option<usize>, ConfineError> {
    Ok(None)
}
