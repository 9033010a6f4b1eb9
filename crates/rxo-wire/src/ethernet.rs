//! Reads the Ethernet header, with up to two VLAN tags.

use crate::parse::Malformed;

/// The length of an Ethernet header without VLAN tags, in bytes.
pub const ETHERNET_HEADER_BYTES: usize = 14;
/// The length of one VLAN tag (802.1Q or 802.1ad), in bytes.
pub const VLAN_TAG_BYTES: usize = 4;

/// The EtherType of IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// The EtherType of IPv6.
pub const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_8021Q: u16 = 0x8100;
const ETHERTYPE_8021AD: u16 = 0x88a8;

/// The VLAN tags in the bytes of a frame: none, one, or two (the outer one first).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VlanStack {
    tci: [u16; 2],
    depth: u8,
}

impl VlanStack {
    /// Returns the number of VLAN tags: 0, 1 or 2.
    #[inline]
    #[must_use]
    pub const fn depth(self) -> u8 {
        self.depth
    }

    /// Returns the TCI of each tag (priority, drop-eligible bit and VLAN identifier), the outer one first.
    #[inline]
    pub fn tags(&self) -> &[u16] {
        &self.tci[..usize::from(self.depth)]
    }

    /// Encodes the number of tags and their VLAN identifiers for a flow key. Priorities are left out, because
    /// packets of one flow may differ in priority.
    #[inline]
    #[must_use]
    pub const fn key(self) -> u32 {
        let outer = (self.tci[0] & 0x0fff) as u32;
        let inner = (self.tci[1] & 0x0fff) as u32;
        (self.depth as u32) << 24 | outer << 12 | inner
    }
}

/// Returns the field at the EtherType's usual offset; in a tagged frame this is the protocol of the first tag. `None`
/// if the frame is too short.
#[inline(always)]
#[must_use]
pub fn ethertype(frame: &[u8]) -> Option<u16> {
    let header: &[u8; ETHERNET_HEADER_BYTES] = frame.first_chunk()?;
    Some(u16::from_be_bytes([header[12], header[13]]))
}

/// The result of reading a link-layer header.
pub(crate) struct EthernetView {
    pub(crate) ethertype: u16,
    pub(crate) vlans: VlanStack,
    /// The offset of the network layer in the frame, in bytes.
    pub(crate) network: usize,
}

#[inline]
pub(crate) fn read(bytes: &[u8]) -> Result<EthernetView, Malformed> {
    let header: &[u8; ETHERNET_HEADER_BYTES] = bytes.first_chunk().ok_or(Malformed::Truncated)?;
    let ethertype = u16::from_be_bytes([header[12], header[13]]);
    let view =
        EthernetView { ethertype, vlans: VlanStack::default(), network: ETHERNET_HEADER_BYTES };
    if is_vlan(ethertype) { read_tags(bytes, view) } else { Ok(view) }
}

#[cold]
fn read_tags(bytes: &[u8], mut view: EthernetView) -> Result<EthernetView, Malformed> {
    while is_vlan(view.ethertype) && view.vlans.depth < 2 {
        let rest = bytes.get(view.network..).ok_or(Malformed::Truncated)?;
        let tag: &[u8; VLAN_TAG_BYTES] = rest.first_chunk().ok_or(Malformed::Truncated)?;
        view.vlans.tci[usize::from(view.vlans.depth)] = u16::from_be_bytes([tag[0], tag[1]]);
        view.vlans.depth += 1;
        view.ethertype = u16::from_be_bytes([tag[2], tag[3]]);
        view.network += VLAN_TAG_BYTES;
    }
    Ok(view)
}

#[inline]
const fn is_vlan(ethertype: u16) -> bool {
    matches!(ethertype, ETHERTYPE_8021Q | ETHERTYPE_8021AD)
}
