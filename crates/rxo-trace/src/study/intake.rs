//! Prepares a record for counting: finds the packet for the engines, and parses its headers.
//!
//! A truncated record is parsed as if it were whole, with zeros for the missing bytes, so that its flow and
//! sizes are counted as they were on the wire. The engines receive the truncated packet, and bypass it. If the
//! checksum of truncated packets is accepted, the engines receive the padded packet instead, because the
//! payload does not matter then. A packet that is shorter than its IP header states was truncated by the
//! program that wrote the capture, and is treated in the same way.
//!
//! If a packet is in an encapsulation that the engine does not read, the engines receive the inner packet.

use rxo_capture::{LinkType, Network, Record, SharedBytes};
use rxo_frame::LinkKind;

use super::checksum::ChecksumMode;
use super::encapsulation::{self, Encapsulation};
use super::packet_kind::{PacketKind, Segment};
use crate::report::Protocol;

/// The maximum length to which a packet is padded, in bytes: one IP packet and its link header.
const LONGEST: u32 = 65_535 + 64;

/// A record that was parsed for a study.
#[derive(Debug)]
pub(super) struct ParsedRecord {
    /// The packet for the engines; `None` if the packet is not IP, or its link type is unknown.
    pub(super) network: Option<Network>,
    pub(super) kind: PacketKind,
    /// The encapsulation of the packet, and `true` if the inner packet was found; `None` if the packet has no
    /// encapsulation.
    pub(super) encapsulation: Option<(Encapsulation, bool)>,
    /// The length of the packet on the wire in bytes, with the link-layer header.
    pub(super) wire_bytes: u64,
    /// `true` if the capture truncated the packet.
    pub(super) is_cut: bool,
    /// `true` if the packet is shorter than its IP header states, although the record claims to be complete.
    pub(super) is_short: bool,
    /// `true` if the whole IP packet is in the record, so that its checksum can be verified.
    pub(super) is_whole: bool,
}

/// Parses a record of an interface with the link type `link`.
#[inline]
pub(super) fn take(record: &Record, link: LinkType, mode: ChecksumMode) -> ParsedRecord {
    let taken = read(&record.bytes, link);
    let held_bytes = record.bytes.as_ref().len() as u64;
    let wire_bytes = held_bytes.max(record.original_bytes.into());
    let taken = ParsedRecord { wire_bytes, ..taken };
    if wire_bytes > held_bytes {
        cut(taken, record, link, mode)
    } else if matches!(taken.kind, PacketKind::Short(_)) {
        short(taken, record, link, mode)
    } else {
        taken
    }
}

#[inline]
fn read(bytes: &SharedBytes, link: LinkType) -> ParsedRecord {
    let network = link.network(bytes);
    let kind = match &network {
        Some(network) => {
            PacketKind::read(network.link, network.packet.as_ref()).on_vlan(network.vlan)
        }
        None => PacketKind::Other,
    };
    if let PacketKind::Segment(segment) = &kind {
        let bytes = network.as_ref().map_or(&[][..], |network| network.packet.as_ref());
        let tunnel = tunnel(segment, bytes).map(|tunnel| (tunnel, true));
        return ParsedRecord { encapsulation: tunnel, ..plain(network, kind) };
    }
    match encapsulation::strip(link, bytes.as_ref()) {
        None => plain(network, kind),
        Some((found, None)) => {
            ParsedRecord { encapsulation: Some((found, false)), ..plain(network, kind) }
        }
        Some((found, Some(ip))) => {
            ParsedRecord { encapsulation: Some((found, true)), ..inside(bytes, link, ip, network) }
        }
    }
}

/// Returns the kind of tunnel of a datagram whose inner packet the engine reads itself; `None` for other
/// segments.
#[inline]
fn tunnel(segment: &Segment, bytes: &[u8]) -> Option<Encapsulation> {
    match segment.protocol {
        Protocol::Tcp => None,
        Protocol::Udp => encapsulation::of_port(segment.destination_port(bytes)),
    }
}

/// Returns the inner packet at the offset `ip` of `bytes`, in the form that the lane of its interface needs.
#[cold]
fn inside(bytes: &SharedBytes, link: LinkType, ip: usize, outer: Option<Network>) -> ParsedRecord {
    let link = if link == LinkType::ETHERNET { LinkKind::Ethernet } else { LinkKind::RawIp };
    let packet = SharedBytes::from(encapsulation::inner(link, bytes.as_ref(), ip));
    let vlan = outer.and_then(|outer| outer.vlan);
    let kind = PacketKind::read(link, packet.as_ref()).on_vlan(vlan);
    plain(Some(Network { link, packet, vlan, header_bytes: ip }), kind)
}

/// Returns the inner packet if `taken` is in a tunnel that the engine reads; otherwise returns `taken`
/// unchanged.
fn opened(taken: ParsedRecord) -> ParsedRecord {
    let (Some(encapsulation), Some(network)) = (taken.encapsulation, &taken.network) else {
        return taken;
    };
    let is_ethernet = network.link == LinkKind::Ethernet;
    let link = if is_ethernet { LinkType::ETHERNET } else { LinkType::RAW };
    match encapsulation::strip(link, network.packet.as_ref()) {
        Some((_, Some(ip))) => {
            let packet = network.packet.clone();
            let inside = inside(&packet, link, ip, taken.network);
            ParsedRecord { encapsulation: Some(encapsulation), ..inside }
        }
        _ => taken,
    }
}

fn plain(network: Option<Network>, kind: PacketKind) -> ParsedRecord {
    ParsedRecord {
        network,
        kind,
        encapsulation: None,
        wire_bytes: 0,
        is_cut: false,
        is_short: false,
        is_whole: true,
    }
}

#[cold]
fn cut(taken: ParsedRecord, record: &Record, link: LinkType, mode: ChecksumMode) -> ParsedRecord {
    // The missing end may be only padding after the packet.
    if matches!(taken.kind, PacketKind::Segment(_)) || record.original_bytes > LONGEST {
        return ParsedRecord { is_cut: true, ..taken };
    }
    whole(taken, padded(record, record.original_bytes, link), mode)
}

/// Returns `taken` with the length that the IP header states, for a record that ends too early. Fields that the header
/// does not determine stay unchanged.
#[cold]
fn short(taken: ParsedRecord, record: &Record, link: LinkType, mode: ChecksumMode) -> ParsedRecord {
    let taken = ParsedRecord { is_cut: true, is_short: true, ..taken };
    let longest = padded(record, LONGEST, link);
    let (PacketKind::Segment(segment), Some(network)) = (&longest.kind, &longest.network) else {
        return taken;
    };
    let beyond = network.packet.as_ref().len() as u32 - segment.at.end;
    let wire_bytes = LONGEST - beyond;
    let taken = ParsedRecord { wire_bytes: wire_bytes.into(), ..taken };
    whole(taken, padded(record, wire_bytes, link), mode)
}

/// Parses the record as if it had `bytes` bytes, with zeros for the missing bytes.
fn padded(record: &Record, bytes: u32, link: LinkType) -> ParsedRecord {
    let mut whole = Vec::with_capacity(bytes as usize);
    whole.extend_from_slice(record.bytes.as_ref());
    whole.resize(bytes as usize, 0);
    read(&whole.into(), link)
}

/// Returns `taken` with the sizes of `whole`, and also with the bytes of `whole` if the checksum is accepted.
/// The engine would verify the checksum inside a tunnel, so a packet in a tunnel is replaced by its inner
/// packet.
fn whole(taken: ParsedRecord, whole: ParsedRecord, mode: ChecksumMode) -> ParsedRecord {
    let whole = if mode.accepts_cut() { opened(whole) } else { whole };
    let network = if mode.accepts_cut() { whole.network } else { taken.network };
    let ParsedRecord { kind, encapsulation, .. } = whole;
    ParsedRecord { network, kind, encapsulation, is_cut: true, is_whole: false, ..taken }
}

#[cfg(test)]
mod tests {
    use rxo_frame::Instant;
    use rxo_testkit::seg;

    use super::*;

    fn record(bytes: &[u8], original_bytes: usize) -> Record {
        Record {
            bytes: bytes.to_vec().into(),
            original_bytes: original_bytes as u32,
            at: Instant::ZERO,
            ..Record::default()
        }
    }

    fn payload_bytes(taken: &ParsedRecord) -> u32 {
        match taken.kind {
            PacketKind::Segment(segment) => segment.at.payload_bytes(),
            ref other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_whole_record_is_given_as_it_is() {
        let bytes = seg().len(500).bytes();
        let taken = take(&record(&bytes, bytes.len()), LinkType::ETHERNET, ChecksumMode::Verify);
        assert!(taken.is_whole && !taken.is_cut);
        assert_eq!(taken.network.unwrap().packet.as_ref(), bytes);
        assert_eq!(taken.wire_bytes, bytes.len() as u64);
    }

    #[test]
    fn a_cut_record_is_counted_whole_and_given_whole_only_when_trusted() {
        let bytes = seg().ts(1, 2).len(1000).bytes();
        for (mode, given) in [(ChecksumMode::Verify, 96), (ChecksumMode::Trust, bytes.len())] {
            let taken = take(&record(&bytes[..96], bytes.len()), LinkType::ETHERNET, mode);
            assert!(!taken.is_whole && taken.is_cut);
            assert_eq!(payload_bytes(&taken), 1000);
            assert_eq!(taken.wire_bytes, bytes.len() as u64);
            assert_eq!(taken.network.unwrap().packet.as_ref().len(), given, "{mode}");
        }
    }

    #[test]
    fn a_packet_that_ends_before_its_ip_header_says_is_cut_too() {
        for packet in [seg().len(400), seg().v6().len(400), seg().vlan(7).ts(1, 2).len(400)] {
            let bytes = packet.bytes();
            let held = &bytes[..bytes.len() - 300];
            for (mode, given) in
                [(ChecksumMode::Verify, held.len()), (ChecksumMode::Trust, bytes.len())]
            {
                let taken = take(&record(held, held.len()), LinkType::ETHERNET, mode);
                assert!(taken.is_short && taken.is_cut && !taken.is_whole, "{packet:?}");
                assert_eq!(payload_bytes(&taken), 400, "{packet:?}");
                assert_eq!(taken.wire_bytes, bytes.len() as u64, "{packet:?}");
                assert_eq!(taken.network.unwrap().packet.as_ref().len(), given, "{mode}");
            }
        }
        let longest = seg().len(100).length_lie(65_000).bytes();
        let record = record(&longest, longest.len());
        let taken = take(&record, LinkType::ETHERNET, ChecksumMode::Trust);
        assert!(taken.is_short && taken.wire_bytes > 65_000, "{}", taken.wire_bytes);
        let nothing_but_addresses = &longest[..34];
        let record = super::tests::record(nothing_but_addresses, 34);
        let taken = take(&record, LinkType::ETHERNET, ChecksumMode::Verify);
        assert!(taken.is_short, "{taken:?}");
    }

    #[test]
    fn a_record_without_its_padding_is_whole() {
        let bytes = seg().pure_ack().padded().bytes();
        let taken =
            take(&record(&bytes[..54], bytes.len()), LinkType::ETHERNET, ChecksumMode::Verify);
        assert!(taken.is_whole && taken.is_cut);
    }

    #[test]
    fn a_length_that_no_packet_has_is_not_believed() {
        let bytes = seg().len(1000).bytes();
        let taken = take(&record(&bytes[..60], 1 << 30), LinkType::ETHERNET, ChecksumMode::Trust);
        assert_eq!(taken.network.unwrap().packet.as_ref().len(), 60);
    }

    #[test]
    fn an_unknown_link_gives_nothing() {
        let taken = take(&record(&[1; 60], 60), LinkType(147), ChecksumMode::Verify);
        assert!(taken.network.is_none() && taken.kind == PacketKind::Other);
    }
}
