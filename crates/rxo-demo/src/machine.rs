//! Which machine figures are from. Figures without it mean nothing. And which of its cores a
//! measurement uses for what.

use std::fmt;
use std::fs;

use serde::Serialize;

/// What decides how fast this machine can be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The processor's name, or "unknown".
    pub cpu: String,
    /// Cores this process may use.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// Whether there is a hypervisor beneath.
    pub virtual_machine: bool,
    /// Where the privilege for private networks came from: "root" or "user-namespace".
    pub privilege: &'static str,
}

impl Machine {
    /// Asks the system; what it does not tell is "unknown".
    pub fn read(privilege: &'static str) -> Self {
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
pub struct Cores {
    /// The sender's core; `None` if nothing is pinned.
    pub sender: Option<usize>,
    /// The receiving host, and rxo.
    pub receiver: Option<usize>,
}

impl Cores {
    /// The sender on one core and everything that receives on another, so that a path's cost is
    /// not hidden by spreading it. Only cores that this process may use; if that is one, there is nothing
    /// to choose.
    pub fn choose() -> Self {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let allowed = cores_of(field(&status, "Cpus_allowed_list").unwrap_or_default());
        // Fewer where the processor time of the process is limited.
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        Self::of(allowed.take(available))
    }

    fn of(mut allowed: impl Iterator<Item = usize>) -> Self {
        match (allowed.next(), allowed.next()) {
            (sender @ Some(_), receiver @ Some(_)) => Self { sender, receiver },
            _ => Self { sender: None, receiver: None },
        }
    }
}

/// The cores of a list such as `0-3,8`, as the kernel writes it.
fn cores_of(list: &str) -> impl Iterator<Item = usize> {
    list.split(',').flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) => first..last + 1,
            _ => 0..0,
        }
    })
}

fn known(text: Option<&str>) -> String {
    text.unwrap_or("unknown").to_owned()
}

/// The first value of `name` in `/proc/cpuinfo` and files like it.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
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
    fn only_allowed_cores_are_chosen() {
        let none = Cores { sender: None, receiver: None };
        assert_eq!(Cores::of(cores_of("")), none);
        assert_eq!(Cores::of(cores_of("3")), none, "one core is not divided");
        assert_eq!(Cores::of(cores_of("0-7").take(1)), none);
        let two = |sender, receiver| Cores { sender: Some(sender), receiver: Some(receiver) };
        assert_eq!(Cores::of(cores_of("0-7")), two(0, 1));
        assert_eq!(Cores::of(cores_of("2-3")), two(2, 3));
        assert_eq!(Cores::of(cores_of("1,6-7")), two(1, 6));
    }
}
