//! Ports of a switch, their settings, and sets of ports.

use std::fmt;

use super::MacAddress;
use super::header::Header;

/// Maximum number of ports of a switch.
pub const MAX_PORTS: usize = 64;
/// The largest VLAN identifier (IEEE 802.1Q, table 9-2).
const MAX_VLAN: u16 = 4_094;

/// A port of a switch, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(u8);

impl Port {
    /// Creates the port with this number.
    ///
    /// # Panics
    /// If `number` is not less than [`MAX_PORTS`].
    #[must_use]
    pub const fn new(number: usize) -> Self {
        assert!(number < MAX_PORTS, "a switch has at most 64 ports");
        Self(number as u8)
    }

    /// Returns the port's number.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Creates the port with the number `index`. The caller ensures that `index` is less than [`MAX_PORTS`].
    pub(super) const fn nth(index: usize) -> Self {
        Self(index as u8)
    }
}

/// The settings of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// The VLANs that the port carries.
    pub vlans: Vlans,
    /// The only address of the device at this port: frames from another address are dropped, and frames for
    /// an unknown address do not leave by this port. `None` for a port that learns addresses.
    pub fixed: Option<MacAddress>,
}

/// The VLANs that a port carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vlans {
    /// The port carries all VLANs (a trunk). Each frame keeps its tag, and frames without a tag pass too.
    All,
    /// The port carries one VLAN, whose frames have no tag on this port (an access port). 0 stands for the
    /// frames that have no tag on any port.
    Only(u16),
}

impl Vlans {
    /// Returns `true` if frames of this VLAN may leave by the port.
    #[must_use]
    pub fn carry(self, vlan: u16) -> bool {
        match self {
            Self::All => true,
            Self::Only(own) => own == vlan,
        }
    }
}

impl PortSettings {
    /// Returns the VLAN of a frame that arrives with this header; `None` if the port does not carry it. A tag
    /// with VLAN 0 contains only a priority (IEEE 802.1Q, table 9-2).
    pub(super) fn vlan_in(&self, header: &Header) -> Option<u16> {
        match self.vlans {
            Vlans::All => Some(header.vlan),
            Vlans::Only(own) => (header.vlan == 0 && !header.hides_tag).then_some(own),
        }
    }
}

/// A set of ports. Iterates in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSet(u64);

impl PortSet {
    /// Returns the set that contains only this port.
    #[must_use]
    pub const fn only(port: Port) -> Self {
        Self(1 << port.0)
    }

    /// Returns the set without this port.
    #[must_use]
    pub const fn without(self, port: Port) -> Self {
        Self(self.0 & !(1 << port.0))
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the ports of this set that are not in `other`.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the intersection of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns `true` if `port` is in the set.
    #[must_use]
    pub const fn contains(self, port: Port) -> bool {
        self.0 & 1 << port.0 != 0
    }

    /// Returns the number of ports in the set.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns the port with the largest number; `None` if the set is empty.
    #[must_use]
    pub const fn last(self) -> Option<Port> {
        if self.is_empty() { None } else { Some(Port(63 - self.0.leading_zeros() as u8)) }
    }

    /// Returns `true` if the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Port> for PortSet {
    fn from_iter<I: IntoIterator<Item = Port>>(ports: I) -> Self {
        Self(ports.into_iter().fold(0, |set, port| set | 1 << port.0))
    }
}

impl Iterator for PortSet {
    type Item = Port;

    fn next(&mut self) -> Option<Port> {
        let port = (self.0 != 0).then(|| Port(self.0.trailing_zeros() as u8))?;
        *self = self.without(port);
        Some(port)
    }
}

/// The reason why a switch cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchError {
    /// There are more than [`MAX_PORTS`] ports.
    TooManyPorts(usize),
    /// The VLAN number is out of range.
    Vlan(u16),
    /// The fixed address of a port is not an address of a single device.
    Address(MacAddress),
    /// Two ports of one VLAN are fixed to this address.
    SameAddress(MacAddress),
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyPorts(ports) => {
                write!(f, "{ports} ports are too many; a switch has at most {MAX_PORTS}")
            }
            Self::Vlan(vlan) => write!(f, "VLAN {vlan} is out of range; take 1 to {MAX_VLAN}"),
            Self::Address(mac) => {
                write!(f, "{mac} is no device's address; take one such as 52:54:00:00:00:02")
            }
            Self::SameAddress(mac) => {
                write!(f, "two ports have the address {mac}; give each its own")
            }
        }
    }
}

impl std::error::Error for SwitchError {}

/// Checks that a switch can have these ports.
///
/// # Errors
/// [`SwitchError`] with the first fault.
pub(super) fn check(ports: &[PortSettings]) -> Result<(), SwitchError> {
    if ports.len() > MAX_PORTS {
        return Err(SwitchError::TooManyPorts(ports.len()));
    }
    for (index, port) in ports.iter().enumerate() {
        if let Vlans::Only(vlan) = port.vlans
            && vlan > MAX_VLAN
        {
            return Err(SwitchError::Vlan(vlan));
        }
        let Some(mac) = port.fixed else { continue };
        if mac.is_group() || mac == MacAddress::ZERO {
            return Err(SwitchError::Address(mac));
        }
        if ports[..index].iter().any(|other| other.fixed == Some(mac) && overlap(other, port)) {
            return Err(SwitchError::SameAddress(mac));
        }
    }
    Ok(())
}

fn overlap(one: &PortSettings, other: &PortSettings) -> bool {
    match (one.vlans, other.vlans) {
        (Vlans::Only(one), Vlans::Only(other)) => one == other,
        _ => true,
    }
}
