//! Link types of captured packets, and the position of the IP packet behind the link header.

use core::num::NonZeroU16;

use rxo_frame::{LinkKind, VlanTag};

use super::{Direction, SharedBytes};

/// A link-layer header type, numbered as in capture files (tcpdump.org/linktypes.html).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: four bytes of address family, in the byte order of the machine that wrote the capture.
    pub const NULL: Self = Self(0);
    /// Ethernet frames, without the frame check sequence.
    pub const ETHERNET: Self = Self(1);
    /// Packets that begin with an IPv4 or IPv6 header, without a link layer.
    pub const RAW: Self = Self(101);
    /// OpenBSD loopback: four bytes of address family, most significant byte first.
    pub const LOOP: Self = Self(108);
    /// Linux cooked capture, version 1: a header of 16 bytes.
    pub const LINUX_SLL: Self = Self(113);
    /// IPv4 packets without a link layer.
    pub const IPV4: Self = Self(228);
    /// IPv6 packets without a link layer.
    pub const IPV6: Self = Self(229);
    /// Linux cooked capture, version 2: a header of 20 bytes.
    pub const LINUX_SLL2: Self = Self(276);

    /// The numbers of the link type [`Self::RAW`] that BSD and OpenBSD use in memory. Some programs also write
    /// these numbers to files.
    const RAW_IN_MEMORY: [Self; 2] = [Self(12), Self(14)];

    /// Returns the frame or IP packet inside a captured `packet` of this link type, in the form that the engine
    /// needs. `None` if `packet` contains no IP packet, or the link type is not supported. Copies nothing.
    ///
    /// * An Ethernet frame is returned unchanged.
    /// * In a cooked frame, the protocol field decides. A VLAN tag before the packet is moved to
    ///   [`Network::vlan`], as a device does, so that VLANs stay separate. The result is `None` for a frame
    ///   with a second tag, because two removed tags would look like one.
    /// * In a loopback frame, the address family decides: 2 is IPv4; 10, 24, 28 and 30 are IPv6 on
    ///   Linux, NetBSD and OpenBSD, FreeBSD, and macOS. [`Self::NULL`] is read in both byte orders.
    ///
    /// # Examples
    /// ```
    /// use rxo_capture::{LinkType, SharedBytes};
    /// use rxo_frame::LinkKind;
    ///
    /// // A loopback frame: an address family, then IPv4.
    /// let frame = SharedBytes::from([&[2, 0, 0, 0][..], &[0x45; 20]].concat());
    /// let network = LinkType::NULL.network(&frame).ok_or("no IP packet")?;
    /// assert_eq!((network.link, network.header_bytes), (LinkKind::RawIp, 4));
    /// assert_eq!(network.packet.as_ref(), [0x45; 20]);
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn network(self, packet: &SharedBytes) -> Option<Network> {
        let bytes = packet.as_ref();
        let (link, before) = match self {
            Self::ETHERNET => (LinkKind::Ethernet, Before::NOTHING),
            _ => (LinkKind::RawIp, self.before_ip(bytes)?),
        };
        let header_bytes = before.bytes;
        let packet = packet.from_offset(header_bytes);
        Some(Network { link, packet, vlan: before.vlan, header_bytes })
    }

    /// Returns `true` if [`Self::network`] supports this link type.
    #[must_use]
    pub fn is_known(self) -> bool {
        matches!(
            self,
            Self::NULL
                | Self::ETHERNET
                | Self::RAW
                | Self::LOOP
                | Self::LINUX_SLL
                | Self::IPV4
                | Self::IPV6
                | Self::LINUX_SLL2
        ) || Self::RAW_IN_MEMORY.contains(&self)
    }

    fn before_ip(self, bytes: &[u8]) -> Option<Before> {
        match self {
            Self::RAW | Self::IPV4 | Self::IPV6 => Some(Before::NOTHING),
            _ if Self::RAW_IN_MEMORY.contains(&self) => Some(Before::NOTHING),
            Self::NULL | Self::LOOP => {
                let family = *bytes.first_chunk()?;
                is_ip_family(self, family).then_some(Before { bytes: 4, vlan: None })
            }
            Self::LINUX_SLL => behind_cooked(bytes, 14, 16),
            Self::LINUX_SLL2 => behind_cooked(bytes, 0, 20),
            _ => None,
        }
    }

    /// Returns the direction of the packet `bytes`; `None` if the link header does not contain the direction.
    pub(super) fn direction(self, bytes: &[u8]) -> Option<Direction> {
        /// The packet type in a cooked header of a packet that the capturing machine sent.
        const OUTGOING: u8 = 4;
        let packet_type = match self {
            Self::LINUX_SLL => *bytes.get(1)?,
            Self::LINUX_SLL2 => *bytes.get(10)?,
            _ => return None,
        };
        Some(if packet_type == OUTGOING { Direction::Out } else { Direction::In })
    }
}

/// A captured packet in the form that the engine needs.
#[derive(Clone, Debug)]
pub struct Network {
    /// The first header of `packet`.
    pub link: LinkKind,
    /// The frame or IP packet. Shares the record's chunk.
    pub packet: SharedBytes,
    /// The VLAN tag that precedes the IP packet in a cooked frame; `None` if the frame has no tag.
    pub vlan: Option<VlanTag>,
    /// The length in bytes of the link header, which precedes `packet` in the record. A writer must begin an
    /// aggregate of the same link type with these header bytes.
    pub header_bytes: usize,
}

/// The link header before an IP packet: its length in bytes, and the VLAN tag in it.
struct Before {
    bytes: usize,
    vlan: Option<VlanTag>,
}

impl Before {
    const NOTHING: Self = Self { bytes: 0, vlan: None };
}

fn is_ip_family(link: LinkType, bytes: [u8; 4]) -> bool {
    const IP_FAMILIES: [u32; 5] = [2, 10, 24, 28, 30];
    IP_FAMILIES.contains(&u32::from_be_bytes(bytes))
        || link == LinkType::NULL && IP_FAMILIES.contains(&u32::from_le_bytes(bytes))
}

/// Reads a cooked header, whose protocol field is at `protocol_at` and whose payload begins at `payload_at`. `None` if
/// no IP packet follows.
fn behind_cooked(bytes: &[u8], protocol_at: usize, payload_at: usize) -> Option<Before> {
    let protocol = be_u16(bytes, protocol_at)?;
    if is_ip(protocol) {
        return (bytes.len() >= payload_at).then_some(Before { bytes: payload_at, vlan: None });
    }
    let tpid = NonZeroU16::new(protocol).filter(|tpid| matches!(tpid.get(), 0x8100 | 0x88a8))?;
    let tci = be_u16(bytes, payload_at)?;
    let is_single = is_ip(be_u16(bytes, payload_at + 2)?);
    let vlan = Some(VlanTag { tpid, tci });
    is_single.then_some(Before { bytes: payload_at + 4, vlan })
}

fn is_ip(protocol: u16) -> bool {
    matches!(protocol, 0x0800 | 0x86dd)
}

fn be_u16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|pair| u16::from_be_bytes(*pair))
}
