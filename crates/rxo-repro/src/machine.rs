//! Which machine figures are from. Figures without it mean nothing. And which of its cores a
//! measurement uses for what.

use std::fmt;
use std::fs;

use serde::Serialize;

/// What decides how fast this machine can be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Machine {
    /// The processor's name, or "unknown".
    pub(crate) cpu: String,
    /// Cores this process may use.
    pub(crate) cores: usize,
    /// The kernel's release.
    pub(crate) kernel: String,
    /// Whether there is a hypervisor beneath.
    pub(crate) virtual_machine: bool,
    /// Where the privilege for private networks came from: "root" or "user-namespace".
    pub(crate) privilege: &'static str,
}

impl Machine {
    /// Asks the system; what it does not tell is "unknown".
    pub(crate) fn read(privilege: &'static str) -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cpu: known(field(&cpuinfo, "model name")),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: known(Some(kernel.trim()).filter(|text| !text.is_empty())),
            virtual_machine: field(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            privilege,
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cores, kernel, virtual_machine, privilege: _ } = self;
        let kind = if *virtual_machine { ", virtual machine" } else { "" };
        write!(f, "Measured on {cpu}, {cores} cores, Linux {kernel}{kind}.")
    }
}

/// Which core does what; `None` leaves it to the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    pub(crate) sender: Option<usize>,
    /// The receiving host, and rxo.
    pub(crate) receiver: Option<usize>,
}

impl Cores {
    /// The sender on one core and everything that receives on another, so that a path's cost is
    /// not hidden by spreading it. On a machine of one core there is nothing to choose.
    pub(crate) fn choose() -> Self {
        Self::of(std::thread::available_parallelism().map_or(1, usize::from))
    }

    fn of(available: usize) -> Self {
        if available < 2 {
            return Self { sender: None, receiver: None };
        }
        Self { sender: Some(0), receiver: Some(1) }
    }
}

fn known(text: Option<&str>) -> String {
    text.unwrap_or("unknown").to_owned()
}

/// The first value of `name` in `/proc/cpuinfo`.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let pairs = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(key, value)| (key.trim(), value.trim())).find(|(key, _)| *key == name).map(|p| p.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "model\t\t: 143\nmodel name\t: A Processor @ 2: 3\nmodel name\t: another\n";
        assert_eq!(field(text, "model name"), Some("A Processor @ 2: 3"));
        assert_eq!(field(text, "mode"), None);
    }

    #[test]
    fn one_core_is_not_divided() {
        assert_eq!(Cores::of(1), Cores { sender: None, receiver: None });
        assert_eq!(Cores::of(8), Cores { sender: Some(0), receiver: Some(1) });
    }
}
