//! Describes the machine, without which figures have no meaning.

use std::fmt;
use std::fs;

use serde::Serialize;

/// The properties of the machine that determine speed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// Name of the processor, as far as known.
    pub(crate) cpu: String,
    /// Processor family, model and stepping, because the name may say too little.
    pub(crate) cpu_model: String,
    /// Clock rate in MHz; 0 if unknown.
    pub(crate) mhz: f64,
    /// Number of cores that this process may use.
    pub(crate) cores: usize,
    /// Size of a core's second-level cache, as the system writes it.
    pub(crate) l2_cache: String,
    /// Kernel release.
    pub(crate) kernel: String,
    /// `true` for a virtual machine.
    pub(crate) virtual_machine: bool,
}

impl Machine {
    /// Reads the properties from the system. A text that is missing becomes "unknown".
    pub(crate) fn read() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let of = |name| field(&cpuinfo, name).unwrap_or("unknown").to_owned();
        Self {
            cpu: of("model name"),
            cpu_model: format!("{}/{}/{}", of("cpu family"), of("model"), of("stepping")),
            mhz: of("cpu MHz").parse().unwrap_or(0.0),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            l2_cache: file("/sys/devices/system/cpu/cpu0/cache/index2/size"),
            kernel: file("/proc/sys/kernel/osrelease"),
            virtual_machine: field(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cpu_model, mhz, cores, l2_cache, kernel, virtual_machine } = self;
        let kind = if *virtual_machine { ", virtual machine" } else { "" };
        write!(
            f,
            "{cpu} (family/model/stepping {cpu_model}, {mhz:.0} MHz, L2 {l2_cache}), \
             {cores} cores, Linux {kernel}{kind}"
        )
    }
}

/// Returns the first value of `name` in `/proc/cpuinfo`; `None` if there is none.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find_map(|(key, value)| (key.trim() == name).then_some(value.trim()))
}

fn file(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "model\t\t: 143\nmodel name\t: A Processor\n";
        assert_eq!(field(text, "model name"), Some("A Processor"));
        assert_eq!(field(text, "model"), Some("143"));
        assert_eq!(field(text, "name"), None);
    }
}
