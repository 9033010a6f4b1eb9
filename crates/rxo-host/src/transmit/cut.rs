//! A large send cut into segments, where the device does not do that.
//!
//! The rules are those of segmentation offload: each segment has the headers of the whole; length, IPv4
//! identification, sequence number and checksum are its own; FIN and PSH stand on the last, CWR on the
//! first. What is the same in all of them is looked at once: a segment costs a copy of the headers and
//! a few additions.

use rxo_wire::checksum::{Sum, Summer};
use rxo_wire::tcp::MIN_HEADER_BYTES;
use rxo_wire::{SeqNumber, TcpFlags};

use super::shape::{IPV4_BYTES, IpStart, TCP, put_length};

/// The headers of a large send, and how its segments follow from them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cutter<'a> {
    headers: &'a [u8],
    network: usize,
    transport: usize,
    /// Identification, sequence number and flags of the whole.
    id: u16,
    seq: SeqNumber,
    flags: u8,
    /// The sum of the IP header without what [`put_length`] writes.
    ip_sum: Sum,
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
    pub(super) index: u16,
    /// Where its text begins in that of the whole.
    pub(super) offset: u32,
    pub(super) is_last: bool,
}

impl Part {
    /// The segment at `index` of `count`, of `size` bytes each but the last.
    pub(super) const fn new(index: usize, size: usize, count: usize) -> Self {
        let offset = (index * size) as u32;
        Self { index: index as u16, offset, is_last: index + 1 == count }
    }
}

impl<'a> Cutter<'a> {
    /// For a large send with these headers, of which IP begins at `network` and TCP at `transport`.
    /// `None` when they are no such headers.
    pub(super) fn new(
        headers: &'a [u8],
        [network, transport]: [usize; 2],
        summer: Option<Summer>,
    ) -> Option<Self> {
        let ip = headers.get(network..transport)?;
        let start: &IpStart = ip.first_chunk()?;
        let segment = headers.get(transport..)?;
        let tcp: &[u8; MIN_HEADER_BYTES] = segment.first_chunk()?;
        let mut tcp_sum = Sum::of(ip.get(addresses_at(start)..)?) + Sum::word(TCP.into());
        if summer.is_some() {
            tcp_sum += sum_without(segment, &[4..8, 13..14, 16..18]);
        }
        Some(Self {
            headers,
            network,
            transport,
            id: u16::from_be_bytes([start[4], start[5]]),
            seq: SeqNumber(u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])),
            flags: tcp[FLAGS_AT],
            ip_sum: sum_without(start, &[2..6, 10..12]),
            tcp_sum,
            summer,
        })
    }

    /// Appends the headers of the segment `part`, whose text is `text`.
    #[inline(always)]
    pub(super) fn append(&self, part: Part, text: [&[u8]; 2], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(self.headers);
        let Some((ip, tcp)) = out
            .get_mut(start + self.network..)
            .and_then(|packet| packet.split_at_mut_checked(self.transport - self.network))
        else {
            return;
        };
        let text_bytes = text[0].len() + text[1].len();
        let tcp_bytes = tcp.len() + text_bytes;
        if let Some(header) = ip.first_chunk_mut() {
            let packet_bytes = self.transport - self.network + tcp_bytes;
            let id = self.id.wrapping_add(part.index);
            put_length(header, packet_bytes as u16, id, self.ip_sum);
        }
        if let Some(header) = tcp.first_chunk_mut() {
            self.put_tcp(header, part, tcp_bytes as u32, text);
        }
    }

    #[inline(always)]
    fn put_tcp(&self, tcp: &mut TcpStart, part: Part, tcp_bytes: u32, text: [&[u8]; 2]) {
        let seq = self.seq + part.offset;
        let flags = self.flags_of(part);
        tcp[4..8].copy_from_slice(&seq.0.to_be_bytes());
        tcp[FLAGS_AT] = flags;
        let checksum = match self.summer {
            None => (self.tcp_sum + Sum::long(tcp_bytes)).fold(),
            Some(summer) => {
                let own = Sum::longs([tcp_bytes, seq.0, flags.into()]);
                (self.tcp_sum + own + text_sum(text, summer)).checksum()
            }
        };
        tcp[CHECKSUM_AT..].copy_from_slice(&checksum.to_be_bytes());
    }

    #[inline]
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
