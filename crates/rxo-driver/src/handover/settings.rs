//! Settings: the kernel's switches for one interface, `/proc/sys/net/ipv4/conf/IF` and `ipv6/conf/IF`.

use std::fs;
use std::path::PathBuf;

use crate::fault;
use rxo_device::DeviceError;

/// The switches of an interface that this process can read, with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    values: Vec<(Protocol, String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Ipv4,
    Ipv6,
}

impl Settings {
    /// Reads the switches of the interface `name`. Switches that the kernel lacks are left out; without IPv6,
    /// all IPv6 switches are.
    #[must_use]
    pub(crate) fn read(name: &str) -> Self {
        let mut values = Vec::new();
        for protocol in [Protocol::Ipv4, Protocol::Ipv6] {
            let entries = fs::read_dir(protocol.directory(name)).into_iter().flatten().flatten();
            for entry in entries {
                if let (Ok(switch), Ok(value)) =
                    (entry.file_name().into_string(), fs::read_to_string(entry.path()))
                {
                    values.push((protocol, switch, value.trim().to_owned()));
                }
            }
        }
        values.sort_by(|a, b| a.1.cmp(&b.1));
        Self { values }
    }

    /// Returns `true` if IPv6 is on.
    #[must_use]
    pub(crate) fn has_ipv6(&self) -> bool {
        self.ipv6(DISABLE_IPV6) == Some("0")
    }

    /// Returns `true` if the kernel accepts router advertisements on the interface `name`. If the kernel does
    /// not, a program may accept them.
    pub(crate) fn accepts_advertisements(name: &str) -> bool {
        let read = |switch| fs::read_to_string(Protocol::Ipv6.path(name, switch)).ok();
        let accepts = read("accept_ra").and_then(|value| value.trim().parse::<i32>().ok());
        match accepts {
            None | Some(0) => false,
            Some(1) => read("forwarding").is_none_or(|value| value.trim() == "0"),
            // A value of 2 or more accepts them on a router as well.
            _ => true,
        }
    }

    /// Sets the switches of the interface `name` to these values, but with the kernel's generation of IPv6
    /// addresses off. A switch that cannot be written is skipped, because some are read-only.
    pub(crate) fn copy_to(&self, name: &str) {
        let there = Self::read(name);
        if self.has_ipv6() {
            _ = fs::write(Protocol::Ipv6.path(name, ADDRESS_MODE), NO_ADDRESSES);
        }
        for value in self.values.iter().filter(|value| !there.values.contains(value)) {
            let (protocol, switch, value) = value;
            if *protocol == Protocol::Ipv4 || ![ADDRESS_MODE, MTU].contains(&switch.as_str()) {
                _ = fs::write(protocol.path(name, switch), value);
            }
        }
    }

    /// Returns `true` if the kernel derives addresses from a secret and from properties of the device, so
    /// that another device gets other addresses.
    #[must_use]
    pub(crate) fn makes_secret_addresses(&self) -> bool {
        self.has_ipv6() && matches!(self.ipv6(ADDRESS_MODE), Some("2" | "3"))
    }

    /// Sets on the interface `name` each switch whose value differs from that of `before`, except those that
    /// a run itself changes.
    pub(crate) fn copy_changes(&self, before: &Self, name: &str) {
        for (protocol, switch, value) in self.values.iter().filter(|it| !before.values.contains(it))
        {
            let is_ours = [ADDRESS_MODE, MTU, DISABLE_IPV6].contains(&switch.as_str());
            if *protocol == Protocol::Ipv4 || !is_ours {
                _ = fs::write(protocol.path(name, switch), value);
            }
        }
    }

    /// Switches IPv6 off on the interface `name` if it was on. The kernel then removes the interface's IPv6
    /// addresses and routes, and sends no IPv6 packets of its own on the interface.
    ///
    /// # Errors
    /// If the switch cannot be written.
    pub(crate) fn disable_ipv6(&self, name: &str) -> Result<(), DeviceError> {
        if !self.has_ipv6() {
            return Ok(());
        }
        write_ipv6(name, DISABLE_IPV6, "1")
    }

    /// Switches IPv6 on again on the interface `name` if it was on. The kernel's address generation stays off, so
    /// that the former addresses can be added first.
    ///
    /// # Errors
    /// If a switch cannot be written.
    pub(crate) fn wake_ipv6(&self, name: &str) -> Result<(), DeviceError> {
        if !self.has_ipv6() {
            return Ok(());
        }
        // Older kernels lack this switch.
        _ = write_ipv6(name, ADDRESS_MODE, NO_ADDRESSES);
        self.allow_ipv6(name)
    }

    /// Switches IPv6 on again on the interface `name` if it was on.
    ///
    /// # Errors
    /// If the switch cannot be written.
    pub(crate) fn allow_ipv6(&self, name: &str) -> Result<(), DeviceError> {
        if !self.has_ipv6() {
            return Ok(());
        }
        write_ipv6(name, DISABLE_IPV6, "0")
    }

    /// Enables the kernel's address generation on the interface `name` again, if it was enabled before.
    pub(crate) fn resume_addresses(&self, name: &str) {
        if let Some(mode) = self.ipv6(ADDRESS_MODE).filter(|_| self.has_ipv6()) {
            _ = write_ipv6(name, ADDRESS_MODE, mode);
        }
    }

    /// The switches that a run itself changes, which the record must contain.
    pub(super) const CHANGED: [&str; 2] = [ADDRESS_MODE, DISABLE_IPV6];

    /// Returns the switches of [`CHANGED`](Self::CHANGED) that the kernel has, with their values.
    pub(super) fn changed(&self) -> impl Iterator<Item = (&'static str, &str)> {
        Self::CHANGED.into_iter().filter_map(|switch| Some((switch, self.ipv6(switch)?)))
    }

    /// Creates settings that contain only these IPv6 switches.
    pub(super) fn with_ipv6<'a>(values: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let of =
            |(switch, value): (&str, &str)| (Protocol::Ipv6, switch.to_owned(), value.to_owned());
        Self { values: values.map(of).collect() }
    }

    fn ipv6(&self, switch: &str) -> Option<&str> {
        let mut values = self.values.iter();
        let found =
            values.find(|(protocol, name, _)| *protocol == Protocol::Ipv6 && name == switch);
        found.map(|(_, _, value)| value.as_str())
    }
}

impl Protocol {
    fn directory(self, name: &str) -> PathBuf {
        let protocol = match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
        };
        PathBuf::from(format!("/proc/sys/net/{protocol}/conf/{name}"))
    }

    fn path(self, name: &str, switch: &str) -> PathBuf {
        self.directory(name).join(switch)
    }
}

fn write_ipv6(name: &str, switch: &str, value: &str) -> Result<(), DeviceError> {
    let path = Protocol::Ipv6.path(name, switch);
    fs::write(&path, value).map_err(|error| {
        let remedy = "run where it can be, or set it before";
        fault::system(format!("cannot write {value} to {}; {remedy}", path.display()), error)
    })
}

const DISABLE_IPV6: &str = "disable_ipv6";
const ADDRESS_MODE: &str = "addr_gen_mode";
const MTU: &str = "mtu";
/// The value of [`ADDRESS_MODE`] with which the kernel generates no address.
const NO_ADDRESSES: &str = "1";
