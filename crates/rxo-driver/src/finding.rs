//! Findings: the results of checks before a run, each with its value and its remedy.
//!
//! Checks of the machine, of an interface, and of the changes that a run would make all return findings. A run
//! refuses at the first finding that would break something; `rxo doctor` and `--dry-run` show all findings.

use std::fmt;
use std::io;

use crate::DeviceName;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check's name. The name of a check stays the same in all versions, because scripts read it.
    pub name: &'static str,
    /// The device that was checked, such as `packet:eth1`; `None` if the machine was checked.
    pub device: Option<String>,
    /// The consequence of the finding for a run.
    pub state: State,
    /// The value that was found, or the fault, as a phrase for the user.
    pub found: String,
    /// The remedy, as a phrase for the user; empty if there is nothing to do.
    pub remedy: String,
}

/// The consequence of a finding for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The check found nothing that affects a run.
    Fine,
    /// The run works, but it is slower, or another program on the machine is impaired.
    Limited,
    /// The run is refused, or would fail.
    Breaks,
    /// The consequence is unknown, because this process lacks the privilege for the check.
    NotRun,
}

impl State {
    /// Returns the state's name, as `rxo doctor` prints it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Limited => "limited",
            Self::Breaks => "breaks",
            Self::NotRun => "not run",
        }
    }
}

impl Finding {
    fn new(
        state: State,
        name: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { name, device: None, state, found: found.into(), remedy: remedy.into() }
    }

    pub(crate) fn fine(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(State::Fine, name, found, "")
    }

    pub(crate) fn limited(
        name: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(State::Limited, name, found, remedy)
    }

    pub(crate) fn breaks(
        name: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(State::Breaks, name, found, remedy)
    }

    /// Returns the finding with `device` as the device that was checked.
    pub(crate) fn for_device(self, device: &DeviceName) -> Self {
        Self { device: Some(device.to_string()), ..self }
    }

    /// Creates the finding for a check that requires the privilege `needs`, which this process lacks.
    pub(crate) fn not_run(name: &'static str, needs: &str) -> Self {
        Self::new(State::NotRun, name, format!("needs {needs}"), "run as root")
    }

    /// Creates the finding for a check that failed with `error`: [`State::NotRun`] if the privilege `needs` is
    /// missing, otherwise the result of `failed`, which receives the error's message.
    pub(crate) fn failed(
        (name, needs): (&'static str, &str),
        error: &io::Error,
        failed: impl FnOnce(String) -> Self,
    ) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::not_run(name, needs),
            _ => failed(error.to_string()),
        }
    }
}

/// Writes the line for a user: the value or fault, then the remedy.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, remedy, .. } = self;
        if remedy.is_empty() { f.write_str(found) } else { write!(f, "{found}; {remedy}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_without_privilege_is_not_run_and_names_it() {
        let of = |code| {
            let error = io::Error::from_raw_os_error(code);
            Finding::failed(("AF_XDP", "CAP_NET_RAW"), &error, |text| {
                Finding::limited("AF_XDP", text, "")
            })
        };
        assert_eq!(of(libc::EPERM), Finding::not_run("AF_XDP", "CAP_NET_RAW"));
        assert_eq!(of(libc::EPERM).to_string(), "needs CAP_NET_RAW; run as root");
        assert_eq!(of(libc::EAFNOSUPPORT).state, State::Limited);
    }
}
