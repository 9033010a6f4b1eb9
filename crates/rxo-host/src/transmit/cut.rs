//! A large send cut into segments, where the device does not do that.
//!
//! The rules are those of segmentation offload: each segment has the headers of the whole; length, IPv4
//! identification, sequence number and checksum are its own; FIN and PSH stand on the last, CWR on the
//! first. What is the same in all of them is looked at once: a segment costs a copy of the headers and
//! a few additions.

use rxo_wire::checksum::{Sum, Summer};
use rxo_wire::tcp::MIN_HEADER_BYTES;
use rxo_wire::{PROTOCOL_TCP, SeqNumber, TcpFlags};

use super::headers::MOST_HEADERS_BYTES;
use super::shape::{IPV4_BYTES, IpStart, put_id, put_length};

/// The headers of a large send, and how its segments follow from them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cutter {
    /// The headers of a segment in the middle; identification and sequence number are those of the first.
    middle: [u8; MOST_HEADERS_BYTES],
    network: usize,
    transport: usize,
    end: usize,
    /// Text of every segment but the last, in bytes.
    size: usize,
    /// Identification, sequence number and flags of the whole.
    id: u16,
    seq: SeqNumber,
    flags: u8,
    /// The sum of the IP header without what [`put_length`] writes, and with the length of the middle ones.
    ip_sum: Sum,
    middle_ip_sum: Sum,
    /// The sum of the pseudo-header without the length; where checksums are computed here, with that of
    /// the TCP header without what is a segment's own.
    tcp_sum: Sum,
    /// `None` when the device completes checksums.
    summer: Option<Summer>,
}

/// Which segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Counted from the first.
    index: u16,
    /// Where its text begins in that of the whole.
    offset: u32,
    is_last: bool,
}

impl Part {
    /// The segment at `index` of `count`, of `size` bytes each but the last.
    pub(super) const fn new(index: usize, size: usize, count: usize) -> Self {
        let offset = (index * size) as u32;
        Self { index: index as u16, offset, is_last: index + 1 == count }
    }

    const fn is_middle(self) -> bool {
        self.index > 0 && !self.is_last
    }
}

impl Cutter {
    /// For a large send with these headers, of which IP begins at the first of `places` and TCP at the
    /// second; each segment but the last has `size` bytes. `None` when they are no such headers.
    pub(super) fn new(
        headers: &[u8],
        [network, transport]: [usize; 2],
        size: usize,
        summer: Option<Summer>,
    ) -> Option<Self> {
        let ip: &IpStart = headers.get(network..transport)?.first_chunk()?;
        let segment = headers.get(transport..)?;
        let tcp: &[u8; MIN_HEADER_BYTES] = segment.first_chunk()?;
        let addresses = headers.get(network + addresses_at(ip)..transport)?;
        let mut tcp_sum = Sum::of(addresses) + Sum::word(PROTOCOL_TCP.into());
        if summer.is_some() {
            tcp_sum += sum_without(segment, &[4..8, 13..14, 16..18]);
        }
        let mut cutter = Self {
            middle: [0; MOST_HEADERS_BYTES],
            network,
            transport,
            end: headers.len(),
            size,
            id: u16::from_be_bytes([ip[4], ip[5]]),
            seq: SeqNumber(u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])),
            flags: tcp[FLAGS_AT],
            ip_sum: sum_without(ip, &[2..6, 10..12]),
            middle_ip_sum: Sum::ZERO,
            tcp_sum,
            summer,
        };
        cutter.middle.get_mut(..headers.len())?.copy_from_slice(headers);
        cutter.prepare();
        Some(cutter)
    }

    /// Writes what the segments in the middle share.
    fn prepare(&mut self) {
        let mut middle = self.middle;
        let part = Part { index: 1, offset: 0, is_last: false };
        if let Some((ip, tcp)) = self.split(&mut middle) {
            self.put_all(ip, tcp, part, self.size);
            let bytes = u16::from_be_bytes([ip[2], ip[3]]);
            self.middle_ip_sum = self.ip_sum + Sum::word(bytes);
        }
        self.middle = middle;
    }

    /// Appends the headers of the segment `part`, whose text is `text`.
    #[inline(always)]
    pub(super) fn append(&self, part: Part, text: [&[u8]; 2], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.middle[..self.end]);
        let Some((ip, tcp)) = out.get_mut(start..).and_then(|headers| self.split(headers)) else {
            return;
        };
        let text_bytes = text[0].len() + text[1].len();
        if part.is_middle() {
            put_id(ip, self.id.wrapping_add(part.index), self.middle_ip_sum);
        } else {
            self.put_all(ip, tcp, part, text_bytes);
        }
        let seq = self.seq + part.offset;
        tcp[4..8].copy_from_slice(&seq.0.to_be_bytes());
        if let Some(summer) = self.summer {
            let own = Sum::longs([self.tcp_bytes(text_bytes), seq.0, tcp[FLAGS_AT].into()]);
            let checksum = (self.tcp_sum + own + text_sum(text, summer)).checksum();
            tcp[CHECKSUM_AT..].copy_from_slice(&checksum.to_be_bytes());
        }
    }

    /// Where a segment's own fields are, in its headers.
    #[inline(always)]
    fn split<'o>(&self, headers: &'o mut [u8]) -> Option<(&'o mut IpStart, &'o mut TcpStart)> {
        let (ip, tcp) = headers.split_at_mut_checked(self.transport)?;
        Some((ip.get_mut(self.network..)?.first_chunk_mut()?, tcp.first_chunk_mut()?))
    }

    /// Lengths, identification, flags, and what the device completes a checksum from.
    fn put_all(&self, ip: &mut IpStart, tcp: &mut TcpStart, part: Part, text_bytes: usize) {
        let tcp_bytes = self.tcp_bytes(text_bytes);
        let packet_bytes = (self.transport - self.network) as u32 + tcp_bytes;
        put_length(ip, packet_bytes as u16, self.id.wrapping_add(part.index), self.ip_sum);
        tcp[FLAGS_AT] = self.flags_of(part);
        let seed = (self.tcp_sum + Sum::long(tcp_bytes)).fold();
        tcp[CHECKSUM_AT..].copy_from_slice(&seed.to_be_bytes());
    }

    fn tcp_bytes(&self, text_bytes: usize) -> u32 {
        (self.end - self.transport + text_bytes) as u32
    }

    fn flags_of(&self, part: Part) -> u8 {
        let not_on_last = if part.is_last { 0 } else { ON_LAST };
        let not_on_first = if part.index == 0 { 0 } else { ON_FIRST };
        self.flags & !(not_on_last | not_on_first)
    }
}

/// The first `bytes` of text in two pieces, or all when there are fewer; they are taken off.
#[inline]
pub(super) fn take<'t>(text: &mut [&'t [u8]; 2], bytes: usize) -> [&'t [u8]; 2] {
    let [first, second] = *text;
    if let Some((part, rest)) = first.split_at_checked(bytes) {
        *text = [rest, second];
        return [part, &[]];
    }
    let (part, rest) = second.split_at(second.len().min(bytes - first.len()));
    *text = [rest, &[]];
    [first, part]
}

/// The sum of text in two pieces.
pub(super) fn text_sum([first, second]: [&[u8]; 2], summer: Summer) -> Sum {
    summer.sum(first) + summer.sum(second).at(first.len())
}

fn addresses_at(ip: &IpStart) -> usize {
    if ip[0] >> 4 == 4 { IPV4_BYTES - 8 } else { 8 }
}

/// The sum of `bytes` as if there were zeros at `holes`.
fn sum_without(bytes: &[u8], holes: &[std::ops::Range<usize>]) -> Sum {
    let hole = |hole: &std::ops::Range<usize>| Sum::of(&bytes[hole.clone()]).at(hole.start);
    holes.iter().fold(Sum::of(bytes), |sum, range| sum - hole(range))
}

/// As much of a TCP header as differs from segment to segment.
type TcpStart = [u8; CHECKSUM_AT + 2];

const FLAGS_AT: usize = 13;
pub(super) const CHECKSUM_AT: usize = 16;
const ON_LAST: u8 = TcpFlags::FIN.union(TcpFlags::PSH).bits() as u8;
const ON_FIRST: u8 = TcpFlags::CWR.bits() as u8;
