//! Validates the metadata in a header against the packet itself.
//!
//! Devices and guests describe their packets in this header. A description may be wrong by mistake or by malice.
//! It may also be incomplete: a kernel describes a tunnel packet by its inner headers, without naming the tunnel.
//! No field of the header is used before it was checked against the packet's own headers. `hdr_len` is never
//! used: kernels fill it differently, and arbitrarily for forwarded packets (Linux documents it as a hint).
//!
//! A partial checksum may be anywhere in the packet: the header states only the position of a checksum that must
//! be completed. Code that reads a transport header must check that the partial checksum is the checksum of that
//! header.

use rxo_frame::{ChecksumStatus, Gso, GsoKind, GsoTunnel, LinkKind, UdpTunnel};
use rxo_wire::segmentation::{Checksums, NotSegmentable, Segments, Stated, segment_stated};
use rxo_wire::tunnel::{Carrier, Inside};
use rxo_wire::{IpVersion, PROTOCOL_TCP, Parsed, Unparsed, parse, parse_ip};

use crate::VnetHeader;

/// The reason for which a packet cannot be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// The input is shorter than a virtio-net header.
    NoHeader,
    /// The checksum field to be completed is not inside the packet.
    Checksum,
    /// The packet is to be segmented, but its headers cannot be read.
    Headers,
    /// The GSO kind is unknown or matches neither the packet nor a packet inside a tunnel, or the segment
    /// size is 0.
    Gso,
    /// The packet cannot be segmented, for the reason given.
    Segmentation(NotSegmentable),
}

impl core::fmt::Display for Invalid {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoHeader => f.write_str("fewer bytes than a virtio-net header has"),
            Self::Checksum => f.write_str("the checksum to be completed is not inside the packet"),
            Self::Headers => f.write_str("the headers of a GSO frame cannot be read"),
            Self::Gso => f.write_str("the kind of GSO is not that of the packet"),
            Self::Segmentation(why) => write!(f, "the packet cannot be segmented: {why}"),
        }
    }
}

impl core::error::Error for Invalid {}

impl VnetHeader {
    /// Validates the metadata for `frame`, whose first header is `link`, and returns it. On success the field
    /// of a partial checksum is inside the frame, and the GSO kind matches the frame's headers. If the kind
    /// matches only headers inside a tunnel, the result names the tunnel. Parses only GSO frames, and never
    /// reads the payload.
    ///
    /// # Errors
    /// [`Invalid`] with the mismatch.
    #[inline]
    pub fn checked(
        self,
        link: LinkKind,
        frame: &[u8],
    ) -> Result<(ChecksumStatus, Option<Gso>), Invalid> {
        let gso = match self.has_gso() {
            true => Some(self.gso().ok_or(Invalid::Gso)?),
            false => None,
        };
        admit(link, frame, (self.checksum(), gso))
    }
}

/// Validates checksum status and GSO metadata for `frame`, whose first header is `link`, by the rules of
/// [`VnetHeader::checked`].
///
/// # Errors
/// [`Invalid`] with the mismatch.
#[inline]
pub fn admit(
    link: LinkKind,
    frame: &[u8],
    (status, gso): (ChecksumStatus, Option<Gso>),
) -> Result<(ChecksumStatus, Option<Gso>), Invalid> {
    if let ChecksumStatus::Partial { start, offset } = status
        && usize::from(start) + usize::from(offset) + 2 > frame.len()
    {
        return Err(Invalid::Checksum);
    }
    let Some(gso) = gso else { return Ok((status, None)) };
    Ok((status, Some(admit_gso(link, frame, (status, gso))?)))
}

fn admit_gso(
    link: LinkKind,
    frame: &[u8],
    (status, gso): (ChecksumStatus, Gso),
) -> Result<Gso, Invalid> {
    let stated = stated(status, gso.kind).ok_or(Invalid::Gso)?;
    let parsed = read(link, frame).map_err(|_| Invalid::Headers)?;
    let found = match stated.is(&parsed) {
        true => None,
        false => Some(tunnel(&parsed, &stated.inside(frame, &parsed).ok_or(Invalid::Gso)?)),
    };
    // If the metadata names no tunnel, the one found is added; if it names one, it must be the one found.
    if gso.tunnel.is_some() && gso.tunnel != found {
        return Err(Invalid::Gso);
    }
    Ok(Gso { tunnel: found, ..gso })
}

/// Segments `frame`, whose first header is `link`, as its checksum status and GSO metadata describe: by the
/// frame's own headers, or by headers inside a tunnel.
///
/// # Errors
/// [`Invalid`] if the metadata does not match the frame, or the frame cannot be segmented.
pub fn segments(
    link: LinkKind,
    frame: &[u8],
    (status, gso): (ChecksumStatus, Gso),
    checksums: Checksums,
) -> Result<Segments<'_>, Invalid> {
    let is_fragment = gso.kind == GsoKind::UdpFragment;
    let stated = stated(status, gso.kind).filter(|_| !is_fragment).ok_or(Invalid::Gso)?;
    let parsed = read(link, frame).map_err(|_| Invalid::Headers)?;
    segment_stated(frame, &parsed, stated, gso.size, checksums).map_err(|why| match why {
        NotSegmentable::Transport => Invalid::Gso,
        why => Invalid::Segmentation(why),
    })
}

/// Returns the headers by which a frame with this metadata is to be segmented. `None` if `kind` cannot be
/// segmented, or if the offset of the checksum field in `status` is not that of the transport protocol of
/// `kind`.
fn stated(status: ChecksumStatus, kind: GsoKind) -> Option<Stated> {
    let (protocol, is_v6) = kind.segments()?;
    let field = if protocol == PROTOCOL_TCP { 16 } else { 6 };
    let transport = match status {
        ChecksumStatus::Partial { offset, .. } if offset != field => return None,
        ChecksumStatus::Partial { start, .. } => Some(start.into()),
        ChecksumStatus::Unknown | ChecksumStatus::Verified => None,
    };
    Some(Stated { protocol, is_v6, transport })
}

fn read(link: LinkKind, frame: &[u8]) -> Result<Parsed, Unparsed> {
    link.read(frame, parse, parse_ip)
}

fn tunnel(outer: &Parsed, inside: &Inside) -> GsoTunnel {
    let Carrier::Udp { has_checksum } = inside.carrier else { return GsoTunnel::OTHER };
    let offset = |at: u32| u8::try_from(at).ok();
    match (offset(inside.outer.transport), offset(inside.parsed.at.network)) {
        (Some(outer_transport), Some(inner_network)) => GsoTunnel::udp(UdpTunnel {
            outer_transport,
            inner_network,
            is_outer_v6: outer.ip.version == IpVersion::V6,
            has_checksum,
        }),
        _ => GsoTunnel::OTHER,
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU16;
    extern crate std;
    use std::vec::Vec;

    use rxo_wire::build::{EthernetHeader, Ipv4Header, Ipv6Header, TcpHeader, UdpHeader};

    use super::*;

    /// Builds an Ethernet frame with a segment or datagram that carries `payload`.
    fn frame(is_v6: bool, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let transport = if protocol == 6 { 20 } else { 8 };
        let ip_bytes = if is_v6 { 40 } else { 20 };
        let mut frame = std::vec![0; 14 + ip_bytes + transport + payload.len()];
        let ethertype = if is_v6 { 0x86dd } else { 0x0800 };
        let link = EthernetHeader { ethertype, ..EthernetHeader::default() };
        let rest = link.write(&mut frame).unwrap();
        let payload_bytes = transport + payload.len();
        let rest = match is_v6 {
            true => Ipv6Header { next_header: protocol, payload_bytes, ..Ipv6Header::default() }
                .write(rest),
            false => Ipv4Header { protocol, payload_bytes, ..Ipv4Header::default() }.write(rest),
        };
        let rest = rest.unwrap();
        let rest = match protocol {
            6 => TcpHeader::default().write(rest),
            _ => UdpHeader { payload_bytes: payload.len(), ..UdpHeader::default() }.write(rest),
        };
        rest.unwrap().copy_from_slice(payload);
        frame
    }

    fn gso(kind: GsoKind) -> Option<Gso> {
        Some(Gso::new(kind, NonZeroU16::new(100).unwrap()))
    }

    fn partial(start: usize, offset: u16) -> ChecksumStatus {
        ChecksumStatus::Partial { start: start as u16, offset }
    }

    const VXLAN: [u8; 8] = [8, 0, 0, 0, 0, 0, 7, 0];

    /// The offset of the inner transport header of an IPv6 packet in VXLAN over IPv4.
    const INSIDE: usize = 14 + 20 + 8 + 8 + 14 + 40;

    fn vxlan() -> Vec<u8> {
        frame(false, 17, &[&VXLAN[..], &frame(true, 6, &[7; 500])].concat())
    }

    /// The name of a case, the given metadata, and the expected result.
    type Row<'a> = (&'a str, GsoKind, ChecksumStatus, Result<Option<GsoTunnel>, Invalid>);

    /// Asserts the result for `frame` with each row's metadata, and that every accepted frame can be
    /// segmented.
    fn assert_admitted(frame: &[u8], rows: &[Row<'_>]) {
        for &(what, kind, status, expected) in rows {
            let said = admit(LinkKind::Ethernet, frame, (status, gso(kind)));
            assert_eq!(said.map(|(_, gso)| gso.unwrap().tunnel), expected, "{what}");
            let cut = segments(
                LinkKind::Ethernet,
                frame,
                (status, gso(kind).unwrap()),
                Checksums::Partial,
            );
            assert!(
                expected == Err(Invalid::Checksum) || cut.is_ok() == expected.is_ok(),
                "{what}"
            );
        }
    }

    #[test]
    fn a_description_of_the_frame_itself_is_true_or_a_lie() {
        let (tcp, tcp_v6, udp) =
            (frame(false, 6, &[7; 500]), frame(true, 6, &[7; 500]), frame(false, 17, &[7; 500]));
        let (own, lie, outside) = (Ok(None), Err(Invalid::Gso), Err(Invalid::Checksum));
        assert_admitted(
            &tcp,
            &[
                ("its own", GsoKind::TcpV4, partial(34, 16), own),
                ("verified", GsoKind::TcpV4, ChecksumStatus::Verified, own),
                ("another version", GsoKind::TcpV6, partial(34, 16), lie),
                ("another protocol", GsoKind::Udp, partial(34, 6), lie),
                ("another place", GsoKind::TcpV4, partial(36, 16), lie),
                ("another field", GsoKind::TcpV4, partial(34, 6), lie),
                ("no segments", GsoKind::AckTemplate, partial(34, 16), lie),
                ("outside", GsoKind::TcpV4, partial(tcp.len(), 16), outside),
            ],
        );
        assert_admitted(&tcp_v6, &[("IPv6", GsoKind::TcpV6, partial(54, 16), own)]);
        assert_admitted(
            &udp,
            &[
                ("datagrams", GsoKind::Udp, partial(34, 6), own),
                ("segments", GsoKind::TcpV4, partial(34, 16), lie),
            ],
        );
    }

    #[test]
    fn a_description_of_a_packet_inside_names_the_tunnel() {
        let named = GsoTunnel::udp(UdpTunnel {
            outer_transport: 34,
            inner_network: 64,
            is_outer_v6: false,
            has_checksum: false,
        });
        let lie = Err(Invalid::Gso);
        assert_admitted(
            &vxlan(),
            &[
                ("that inside", GsoKind::TcpV6, partial(INSIDE, 16), Ok(Some(named))),
                ("another version", GsoKind::TcpV4, partial(INSIDE, 16), lie),
                ("another protocol", GsoKind::Udp, partial(INSIDE, 6), lie),
                ("another place", GsoKind::TcpV6, partial(INSIDE + 2, 16), lie),
                ("no place", GsoKind::TcpV6, ChecksumStatus::Verified, lie),
            ],
        );
    }

    /// Only one level of tunnels is parsed. Metadata for a packet in a second one is refused.
    #[test]
    fn a_description_of_a_packet_in_two_tunnels_is_refused() {
        let nested = frame(false, 17, &[&VXLAN[..], &vxlan()].concat());
        let start = INSIDE + 14 + 20 + 8 + 8;
        let row = ("that inside both", GsoKind::TcpV6, partial(start, 16), Err(Invalid::Gso));
        assert_admitted(&nested, &[row]);
    }

    /// Refuses a named tunnel that does not exist or has other offsets.
    #[test]
    fn a_tunnel_that_is_named_is_the_one_around_the_packet() {
        let named = |outer_transport, inner_network| {
            let (is_outer_v6, has_checksum) = (false, false);
            let tunnel = UdpTunnel { outer_transport, inner_network, is_outer_v6, has_checksum };
            Some(GsoTunnel::udp(tunnel))
        };
        let (tcp, vxlan) = (frame(false, 6, &[7; 500]), vxlan());
        let rows = [
            (&vxlan, GsoKind::TcpV6, partial(INSIDE, 16), named(34, 64), true),
            (&vxlan, GsoKind::TcpV6, partial(INSIDE, 16), named(34, 60), false),
            (&vxlan, GsoKind::TcpV6, partial(INSIDE, 16), Some(GsoTunnel::OTHER), false),
            (&tcp, GsoKind::TcpV4, partial(34, 16), named(34, 64), false),
        ];
        for (frame, kind, status, tunnel, is_right) in rows {
            let said = Some(Gso { tunnel, ..gso(kind).unwrap() });
            let expected = if is_right { Ok((status, said)) } else { Err(Invalid::Gso) };
            assert_eq!(admit(LinkKind::Ethernet, frame, (status, said)), expected);
        }
    }

    /// A GSO description requires readable headers; a checksum description does not.
    #[test]
    fn only_a_gso_frame_is_read() {
        let tcp = frame(false, 6, &[7; 500]);
        let said = (partial(20, 16), gso(GsoKind::TcpV4));
        assert_eq!(admit(LinkKind::Ethernet, &tcp[..40], said), Err(Invalid::Headers));
        let said = (partial(20, 6), None);
        assert_eq!(admit(LinkKind::Ethernet, &tcp[..40], said), Ok(said));
    }
}
