//! Cuts a TCP super-packet into the segments that a network would carry.
//!
//! Separate from the network that loses them, because it decides nothing: the rules are those of
//! segmentation offload (each segment the headers of the whole; length, IPv4 ID, sequence number
//! and checksum its own; PSH and FIN on the last, CWR on the first).

use rxo_frame::{ChecksumStatus, Frame, GsoKind, LinkKind};
use rxo_wire::checksum::{Summer, ipv4_header_checksum, pseudo_header};
use rxo_wire::{IpVersion, Parsed, TcpFlags, Transport, parse, parse_ip};

/// Gives the segments of `frame` in order. `false`, and nothing is given, when it is not several
/// TCP segments in one or its headers cannot be read. Allocates room for one segment.
pub(super) fn cut(frame: Frame<&[u8]>, link: LinkKind, mut give: impl FnMut(Frame<&[u8]>)) -> bool {
    let Some(gso) = frame.gso else { return false };
    let parsed = match link {
        LinkKind::Ethernet => parse(frame.bytes),
        LinkKind::RawIp => parse_ip(frame.bytes),
    };
    let (GsoKind::TcpV4 | GsoKind::TcpV6, Ok(parsed)) = (gso.kind, parsed) else { return false };
    let Transport::Tcp(_) = parsed.transport else { return false };
    let (payload, end) = (parsed.at.payload as usize, parsed.at.end as usize);
    let Some((headers, payload)) =
        frame.bytes.get(..end).and_then(|all| all.split_at_checked(payload))
    else {
        return false;
    };
    let size = usize::from(gso.size.get());
    let last = payload.len().div_ceil(size).saturating_sub(1);
    let mut bytes = Vec::with_capacity(headers.len() + size);
    for (index, part) in payload.chunks(size).enumerate() {
        bytes.clear();
        bytes.extend_from_slice(headers);
        bytes.extend_from_slice(part);
        let place = Part { index, offset: index * size, is_last: index == last };
        write_headers(&mut bytes, &parsed, place, frame.checksum);
        give(Frame { bytes: bytes.as_slice(), gso: None, ..frame });
    }
    // Without payload nothing was given.
    !payload.is_empty()
}

/// Which of the segments it is.
#[derive(Clone, Copy)]
struct Part {
    index: usize,
    offset: usize,
    is_last: bool,
}

fn write_headers(bytes: &mut [u8], parsed: &Parsed, part: Part, checksum: ChecksumStatus) {
    let (network, transport) = (parsed.at.network as usize, parsed.at.transport as usize);
    let (ip, segment) = bytes.split_at_mut(transport);
    let ip = &mut ip[network..];
    match parsed.ip.version {
        IpVersion::V4 => {
            put(ip, 2, (ip.len() + segment.len()) as u16);
            put(ip, 4, parsed.ip.id.wrapping_add(part.index as u16));
            let sum = ipv4_header_checksum(ip);
            put(ip, 10, sum);
        }
        IpVersion::V6 => put(ip, 4, (ip.len() - IPV6_HEADER_BYTES + segment.len()) as u16),
    }
    write_tcp(segment, parsed, part, checksum);
}

fn write_tcp(segment: &mut [u8], parsed: &Parsed, part: Part, checksum: ChecksumStatus) {
    let Transport::Tcp(tcp) = parsed.transport else { return };
    let seq = tcp.seq.0.wrapping_add(part.offset as u32);
    segment[4..8].copy_from_slice(&seq.to_be_bytes());
    let on_last = TcpFlags::PSH.union(TcpFlags::FIN).bits() as u8;
    let on_first = TcpFlags::CWR.bits() as u8;
    segment[13] &= !(if part.is_last { 0 } else { on_last });
    segment[13] &= !(if part.index == 0 { 0 } else { on_first });
    let pseudo = pseudo_header(&parsed.key, PROTOCOL_TCP, segment.len() as u32);
    put(segment, CHECKSUM_AT, 0);
    let sum = if checksum.is_partial() {
        pseudo.fold()
    } else {
        (pseudo + Summer::detect().sum(segment)).checksum()
    };
    put(segment, CHECKSUM_AT, sum);
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

const PROTOCOL_TCP: u8 = 6;
const IPV6_HEADER_BYTES: usize = 40;
const CHECKSUM_AT: usize = 16;
