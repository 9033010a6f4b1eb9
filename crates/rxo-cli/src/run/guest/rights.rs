//! The parts of `--vhost` about the rights of a guest: its addresses, its role on the link, and the memory
//! that it may share.

use anyhow::Result;
use rxo::switch::{Guard, MacAddress};
use rxo_console::numbers::parse_bytes;
use rxo_driver::GuestMemory;

use crate::exit::usage;

/// The rights of a guest.
#[derive(Clone, Debug)]
pub(in crate::run) struct Rights {
    /// The only Ethernet address that the guest may use; `None` if its addresses are learned.
    pub(in crate::run) mac: Option<MacAddress>,
    pub(in crate::run) guard: Guard,
    pub(in crate::run) memory: GuestMemory,
    learns: bool,
}

impl Default for Rights {
    /// Returns the rights before any part is parsed: no address, and memory of any size without holes.
    fn default() -> Self {
        let memory = GuestMemory { may_be_sparse: false, ..GuestMemory::default() };
        Self { mac: None, guard: Guard::default(), memory, learns: false }
    }
}

impl Rights {
    /// Parses the part `key=value` of the flag's value `text`. Returns `false` if the part does not concern
    /// rights.
    ///
    /// # Errors
    /// If the value is invalid.
    pub(super) fn take(&mut self, text: &str, key: &str, value: &str) -> Result<bool> {
        let yes = || parse_yes(text, key, value);
        match key {
            "mac" => self.mac = Some(mac_address(text, value)?),
            "ip" => self.guard.ips.push(value.parse().map_err(|_| {
                let remedy =
                    "write one such as 192.0.2.7, or fd00::7; give ip= again for each other";
                usage(format!("--vhost {text}: {value} is no IP address; {remedy}"))
            })?),
            "memory" => {
                let bytes = memory_bytes(value, || format!("--vhost {text}: memory={value}"))?;
                self.memory.most_bytes = Some(bytes);
            }
            "learn" => self.learns = yes()?,
            "isolated" => self.guard.is_isolated = yes()?,
            "router" => self.guard.routes = yes()?,
            "dhcp" => self.guard.serves_dhcp = yes()?,
            "sparse" => self.memory.may_be_sparse = yes()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks that all parts together are valid.
    ///
    /// # Errors
    /// If the guest has no address, or two parts contradict each other.
    pub(super) fn check(&self, text: &str) -> Result<()> {
        let Self { mac, guard, memory, learns } = self;
        let wrong = |why: &str| Err(usage(format!("--vhost {text}: {why}")));
        if mac.is_none() && !learns {
            return wrong(
                "give its address by mac=, such as mac=52:54:00:00:00:02, or learn=yes to a guest \
                 that may have any",
            );
        }
        if mac.is_some() && *learns {
            return wrong("mac= is its only address, and learn=yes allows any; give one of them");
        }
        if guard.routes && !guard.ips.is_empty() {
            return wrong("a router sends for other addresses than ip=; give ip= or router=yes");
        }
        if memory.may_be_sparse && memory.most_bytes.is_none() {
            return wrong(
                "with sparse=yes rxo pays for memory of the guest; say how much by memory=, such as \
                 memory=2G",
            );
        }
        Ok(())
    }

    /// Formats the guest's rights on the link, without the right to use its own address.
    pub(super) fn text(&self) -> String {
        let Guard { ips, routes, serves_dhcp, is_isolated } = &self.guard;
        let ips = ips.iter().map(|ip| format!(", {ip}"));
        let memory =
            self.memory.most_bytes.map(|bytes| format!(", at most {bytes} bytes of memory"));
        let flags = [
            (*is_isolated, ", isolated"),
            (*routes, ", a router"),
            (*serves_dhcp, ", a DHCP server"),
            (self.memory.may_be_sparse, ", memory with holes"),
        ];
        let flags =
            flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, text)| text.to_owned());
        ips.chain(flags).chain(memory).collect()
    }
}

fn parse_yes(text: &str, key: &str, value: &str) -> Result<bool> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(usage(format!("--vhost {text}: {key}={value} means nothing; give yes or no"))),
    }
}

fn mac_address(text: &str, mac: &str) -> Result<MacAddress> {
    mac.parse().map_err(|_| {
        usage(format!("--vhost {text}: {mac} is no address; write one such as 52:54:00:00:00:02"))
    })
}

/// Parses a memory size, whose units are powers of 1024: `2G` is the memory of a guest of QEMU with `-m 2G`.
/// `flag` returns the flag and its value, for the error.
///
/// # Errors
/// If `memory` is not a size.
pub(in crate::run) fn memory_bytes(memory: &str, flag: impl Fn() -> String) -> Result<u64> {
    let is_short = memory.ends_with(['K', 'M', 'G']);
    let bytes = parse_bytes(&if is_short { format!("{memory}iB") } else { memory.to_owned() });
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| usage(format!("{} is no size; give one such as 2G or 512M", flag())))
}
