//! Ports: their settings, and sets of them.

use std::fmt;

use super::MacAddress;
use super::header::Header;

/// The most ports of a switch.
pub const MAX_PORTS: usize = 64;
/// The largest VLAN identifier (IEEE 802.1Q, table 9-2).
const MAX_VLAN: u16 = 4_094;

/// A port, by its number from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(u8);

impl Port {
    /// The port with this number.
    ///
    /// # Panics
    /// If `number` is not below [`MAX_PORTS`].
    #[must_use]
    pub const fn new(number: usize) -> Self {
        assert!(number < MAX_PORTS, "a switch has at most 64 ports");
        Self(number as u8)
    }

    /// Its number.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The port with a number that is known to be below [`MAX_PORTS`].
    pub(super) const fn nth(index: usize) -> Self {
        Self(index as u8)
    }
}

/// What a port carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// Its VLANs.
    pub vlans: Vlans,
    /// The only address behind it. Frames from another are dropped, and frames for an unknown address do
    /// not leave by it. `None` for a port that learns.
    pub fixed: Option<MacAddress>,
}

/// The VLANs that a port carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vlans {
    /// All, each frame with its tag; frames without a tag too.
    All,
    /// One, whose frames have no tag on this port; 0 for the frames that have none anywhere.
    Only(u16),
}

impl Vlans {
    /// Whether frames of this VLAN leave by the port.
    #[must_use]
    pub fn carry(self, vlan: u16) -> bool {
        match self {
            Self::All => true,
            Self::Only(own) => own == vlan,
        }
    }
}

impl PortSettings {
    /// The VLAN of a frame that comes in with this header; `None` if the port does not carry it. A tag of
    /// VLAN 0 has a priority only (IEEE 802.1Q, table 9-2).
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
    /// The set of this port.
    #[must_use]
    pub const fn only(port: Port) -> Self {
        Self(1 << port.0)
    }

    /// The set without this port.
    #[must_use]
    pub const fn without(self, port: Port) -> Self {
        Self(self.0 & !(1 << port.0))
    }

    /// Whether the port is in it.
    #[must_use]
    pub const fn contains(self, port: Port) -> bool {
        self.0 & 1 << port.0 != 0
    }

    /// Number of ports in it.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The port with the largest number; `None` if the set is empty.
    #[must_use]
    pub const fn last(self) -> Option<Port> {
        if self.is_empty() { None } else { Some(Port(63 - self.0.leading_zeros() as u8)) }
    }

    /// Whether no port is in it.
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

/// Why a switch cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchError {
    /// It would have more than [`MAX_PORTS`].
    TooManyPorts(usize),
    /// No VLAN has this number.
    Vlan(u16),
    /// The address of a port cannot be that of a device.
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
/// [`SwitchError`] names the first thing that is wrong.
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
