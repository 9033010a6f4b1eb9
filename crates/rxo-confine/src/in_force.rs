//! The limits of a confinement that the kernel has accepted.

use std::fmt;

use rustix::thread::CapabilitySet;

use crate::User;

/// The limits that the kernel enforces for a confined thread and for the threads that it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    user: Option<String>,
    /// The limits that the kernel enforces; `None` if nothing was given up.
    limits: Option<Limits>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    capabilities: CapabilitySet,
    /// The version of Landlock that the kernel supports; `None` if Landlock does not restrict files.
    landlock_abi: Option<u32>,
    /// The number of system calls that stay allowed; `None` if there is no seccomp filter.
    calls: Option<usize>,
}

impl InForce {
    pub(crate) fn new(
        user: Option<&User>,
        capabilities: CapabilitySet,
        landlock_abi: Option<u32>,
        calls: Option<usize>,
    ) -> Self {
        let limits = Limits { capabilities, landlock_abi, calls };
        Self { user: user.map(ToString::to_string), limits: Some(limits) }
    }

    pub(crate) fn open(user: Option<&User>) -> Self {
        Self { user: user.map(ToString::to_string), limits: None }
    }

    /// Returns `true` if Landlock restricts files.
    #[must_use]
    pub fn limits_files(&self) -> bool {
        self.limits.is_some_and(|limits| limits.landlock_abi.is_some())
    }

    /// Returns `true` if seccomp restricts system calls.
    #[must_use]
    pub fn limits_calls(&self) -> bool {
        self.limits.is_some_and(|limits| limits.calls.is_some())
    }

    /// Returns a line of text for each limit that this kernel does not support. The line names the consequence.
    #[must_use]
    pub fn gaps(&self) -> Vec<String> {
        let Some(Limits { landlock_abi, calls, .. }) = self.limits else { return Vec::new() };
        let files = landlock_abi.is_none().then_some(
            "this kernel has no Landlock (Linux 5.13, `lsm=landlock`), or a container refuses it: files are limited by the user \
             and the system calls alone",
        );
        let calls = calls.is_none().then_some(
            "this kernel or processor has no seccomp filters, or a container refuses them: system calls are limited by capabilities \
             and Landlock alone",
        );
        files.into_iter().chain(calls).map(ToOwned::to_owned).collect()
    }
}

impl fmt::Display for InForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "user {user}, ")?;
        }
        let Some(Limits { capabilities, landlock_abi, calls }) = self.limits else {
            return f.write_str("off");
        };
        let names: Vec<_> = capabilities.iter_names().map(|(name, _)| name).collect();
        match names.as_slice() {
            [] => f.write_str("no capabilities")?,
            names => write!(f, "capabilities {}", names.join(" "))?,
        }
        match landlock_abi {
            Some(abi) => write!(f, ", Landlock {abi}")?,
            None => f.write_str(", no Landlock")?,
        }
        match calls {
            Some(calls) => write!(f, ", {calls} system calls"),
            None => f.write_str(", no seccomp"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_force_is_a_line_and_what_is_missing_another() {
        let all = InForce::new(None, CapabilitySet::NET_ADMIN, Some(7), Some(90));
        assert_eq!(all.to_string(), "capabilities NET_ADMIN, Landlock 7, 90 system calls");
        assert_eq!(all.gaps().len(), 0);
        let none = InForce::new(None, CapabilitySet::empty(), None, None);
        assert_eq!(none.to_string(), "no capabilities, no Landlock, no seccomp");
        assert_eq!(none.gaps().len(), 2);
        assert_eq!(InForce::open(None).to_string(), "off");
        assert_eq!(InForce::open(None).gaps().len(), 0, "it was asked for");
    }
}
