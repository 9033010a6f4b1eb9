//! Raises the limit of open files of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files to `wanted`, or to the maximum that the system permits if that is lower.
/// Returns the new limit if it is lower than `wanted`; otherwise `None`.
pub(crate) fn allow(wanted: u64) -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current.filter(|current| *current < wanted)?;
    let most = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let allowed = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum });
    let now = if allowed.is_ok() { most } else { current };
    (now < wanted).then_some(now)
}
