//! Writes the Ethernet header, with VLAN tags.

use super::{BuildError, split, split_fixed};
use crate::{ETHERNET_HEADER_BYTES, VLAN_TAG_BYTES};

/// An Ethernet header, with any number of VLAN tags before the EtherType.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EthernetHeader<'a> {
    /// The Ethernet address of the receiver.
    pub destination: [u8; 6],
    /// The Ethernet address of the sender.
    pub source: [u8; 6],
    /// The VLAN tags before the EtherType, the outer one first.
    pub tags: &'a [VlanTag],
    /// The EtherType of the payload: 0x0800 for IPv4, 0x86dd for IPv6.
    pub ethertype: u16,
}

/// A VLAN tag of an Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// The tag protocol identifier: 0x8100 (802.1Q) or 0x88a8 (802.1ad).
    pub tpid: u16,
    /// The tag control information: priority (3 bits), drop eligible (1 bit), VLAN identifier (12 bits).
    pub tci: u16,
}

impl EthernetHeader<'_> {
    /// Returns the length of the header with its tags, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        ETHERNET_HEADER_BYTES + self.tags.len() * VLAN_TAG_BYTES
    }

    /// Writes the header at the start of `out` and returns the rest of `out`.
    ///
    /// # Errors
    /// [`BuildError::NoRoom`] if `out` is too short.
    pub fn write<'o>(&self, out: &'o mut [u8]) -> Result<&'o mut [u8], BuildError> {
        let (header, rest) = split(out, self.bytes())?;
        let (addresses, header) = split_fixed::<12>(header)?;
        addresses[..6].copy_from_slice(&self.destination);
        addresses[6..].copy_from_slice(&self.source);
        let (tags, ethertype) = header.as_chunks_mut::<VLAN_TAG_BYTES>();
        for (to, tag) in tags.iter_mut().zip(self.tags) {
            to[..2].copy_from_slice(&tag.tpid.to_be_bytes());
            to[2..].copy_from_slice(&tag.tci.to_be_bytes());
        }
        ethertype.copy_from_slice(&self.ethertype.to_be_bytes());
        Ok(rest)
    }
}
