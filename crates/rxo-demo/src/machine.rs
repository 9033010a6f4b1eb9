//! Describes the machine on which a measurement runs, and chooses the cores that the measurement uses.

use std::fmt;
use std::fs;

use serde::Serialize;

/// The properties of a machine that determine how fast it can be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The processor's name, or "unknown".
    pub cpu: String,
    /// Number of cores that this process may use.
    pub cores: usize,
    /// The release of the kernel, such as 6.12.1.
    pub kernel: String,
    /// `true` if the machine runs under a hypervisor.
    pub virtual_machine: bool,
    /// The memory in MiB; `None` if the system does not report it.
    pub memory_mib: Option<u64>,
    /// The source of the privilege to create network namespaces: "root" or "user-namespace".
    pub privilege: &'static str,
}

impl Machine {
    /// Returns the properties of this machine. A value that the system does not report becomes "unknown".
    pub fn read(privilege: &'static str) -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cpu: known(field(&cpuinfo, "model name")),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: known(Some(kernel.trim()).filter(|text| !text.is_empty())),
            virtual_machine: field(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            memory_mib: memory_mib(&fs::read_to_string("/proc/meminfo").unwrap_or_default()),
            privilege,
        }
    }
}

/// Returns the machine's memory in MiB from the contents of `/proc/meminfo`; `None` if `meminfo` does not
/// contain it.
fn memory_mib(meminfo: &str) -> Option<u64> {
    let kib: u64 = field(meminfo, "MemTotal")?.strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib / 1_024)
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cores, kernel, virtual_machine, .. } = self;
        let kind = if *virtual_machine { ", virtual machine" } else { "" };
        write!(f, "Measured on {cpu}, {cores} cores, Linux {kernel}{kind}.")
    }
}

/// The cores to which the threads of a measurement are pinned. `None` leaves the choice to the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// The core of the sender; `None` if nothing is pinned.
    pub sender: Option<usize>,
    /// The core of the receiving host and of rxo; `None` if nothing is pinned.
    pub receiver: Option<usize>,
}

impl Cores {
    /// Chooses one core for the sender and another for all receiving work, so that a path cannot hide its cost by using
    /// more cores. Chooses among the cores that this process may use; with a single core nothing is pinned.
    pub fn choose() -> Self {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let allowed = cores_of(field(&status, "Cpus_allowed_list").unwrap_or_default());
        // A CPU quota of the process may allow fewer cores than its affinity mask.
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

/// Parses a core list such as `0-3,8`, in the kernel's notation.
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

/// Returns the first value of the field `name` in `/proc/cpuinfo` and files of that format; `None` if there
/// is none.
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
