//! The next pure ACK of the connection whose ACK was gathered last, recognised by one compare.
//!
//! ACKs of a connection come in bursts. Two of them differ in the IPv4 identification and checksum, the sequence and
//! ACK number, the window, the TCP checksum, the values of the timestamp, and in padding. If all other bytes are equal
//! and both checksums are right, all checks give the same answers as for the ACK before. So none is made again. The engine does the same for data (`rxo-coalesce/src/engine/expected.rs`).
//!
//! Contract: what passes between two ACKs may change the answers, so whoever passes a frame on calls
//! [`Expected::forget`]; a batch begins with nothing expected.

use rxo_frame::{Frame, LinkKind};
use rxo_wire::tcp::AckRecord;
use rxo_wire::{ETHERNET_HEADER_BYTES, SeqNumber};

/// What is expected. By default nothing.
#[derive(Debug)]
pub(super) struct Expected {
    /// `None` if nothing is expected.
    layout: Option<&'static Layout>,
    /// The first bytes of the ACK before.
    head: [u8; HEAD_BYTES],
    /// Its last bytes.
    tail: [u8; TAIL_BYTES],
    /// What its IPv4 identification and checksum add up to.
    ip_sum: u16,
    /// What its TCP header adds up to; `None` if nobody has verified its checksum.
    tcp_sum: Option<u16>,
    /// Its fields. Those that are not read of the next ACK are the same.
    record: AckRecord,
    /// The run in which it was gathered.
    run: u32,
}

impl Default for Expected {
    fn default() -> Self {
        Self {
            layout: None,
            head: [0; HEAD_BYTES],
            tail: [0; TAIL_BYTES],
            ip_sum: 0,
            tcp_sum: None,
            record: AckRecord::default(),
            run: 0,
        }
    }
}

impl Expected {
    /// Expects nothing.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.layout = None;
    }

    /// Expects what follows `frame`, which is a pure ACK with the fields `record` that was gathered in `run`.
    pub(super) fn learn(
        &mut self,
        link: LinkKind,
        frame: &Frame<&[u8]>,
        record: &AckRecord,
        run: u32,
    ) {
        let bytes = frame.bytes;
        self.forget();
        let layout = Layout::of(link, bytes, record.has_timestamp);
        let (Some(layout), Some(head), Some(tail)) =
            (layout, bytes.first_chunk(), bytes.last_chunk())
        else {
            return;
        };
        if layout.has_timestamp && !has_usual_timestamp(timestamped(tail)) {
            return;
        }
        self.layout = Some(layout);
        (self.head, self.tail) = (*head, *tail);
        self.ip_sum = layout.ip_sum(head);
        self.tcp_sum = (!frame.checksum.is_trusted()).then(|| layout.tcp_sum(tail));
        (self.record, self.run) = (*record, run);
    }

    /// The fields of `frame` if it is what is expected, and the run to which it belongs.
    #[inline(always)]
    pub(super) fn read(&self, frame: &Frame<&[u8]>) -> Option<(u32, AckRecord)> {
        let layout = self.layout?;
        if frame.bytes.len() != layout.bytes || frame.gso.is_some() || frame.vlan.is_some() {
            return None;
        }
        let (head, tail) = (frame.bytes.first_chunk()?, frame.bytes.last_chunk()?);
        let is_like = is_equal(head, &self.head, &layout.head)
            && is_equal(tail, &self.tail, &layout.tail)
            && layout.ip_sum(head) == self.ip_sum;
        if !is_like || !self.is_sum_right(layout, frame, tail) {
            return None;
        }
        let arrived_at_ns = frame.arrived_at.as_nanos();
        Some((self.run, layout.read(tail, AckRecord { arrived_at_ns, ..self.record })))
    }

    #[inline(always)]
    fn is_sum_right(&self, layout: &Layout, frame: &Frame<&[u8]>, tail: &[u8; TAIL_BYTES]) -> bool {
        frame.checksum.is_trusted() || Some(layout.tcp_sum(tail)) == self.tcp_sum
    }
}

/// Where the headers of a pure ACK lie, and which of their bytes may differ from one ACK to the next.
#[derive(Debug)]
struct Layout {
    /// Ones where bytes must be equal.
    head: [u8; HEAD_BYTES],
    tail: [u8; TAIL_BYTES],
    /// The length of the frame.
    bytes: usize,
    /// Where the IPv4 identification and checksum begin; both at 0 for IPv6.
    ipv4: [usize; 2],
    /// Where the TCP header begins in the tail.
    tcp: usize,
    has_timestamp: bool,
}

impl Layout {
    /// The layout of a pure ACK, if it is one of the usual.
    fn of(link: LinkKind, frame: &[u8], has_timestamp: bool) -> Option<&'static Self> {
        let network = if link == LinkKind::RawIp { 0 } else { ETHERNET_HEADER_BYTES };
        let is_v4 = frame.get(network)? >> 4 == 4;
        let is_it = |layout: &&Self| {
            layout.bytes == frame.len()
                && layout.has_timestamp == has_timestamp
                && (layout.ipv4[0] != 0) == is_v4
        };
        LAYOUTS.iter().find(is_it)
    }

    const fn new(network: usize, is_v4: bool, has_timestamp: bool, bytes: usize) -> Self {
        let tcp = network + if is_v4 { 20 } else { 40 };
        let end = tcp + if has_timestamp { 32 } else { 20 };
        let mut fixed = [0; MOST_BYTES];
        let mut at = 0;
        while at < end {
            let may_differ = is_v4 && (is_in(at, network + 4, 2) || is_in(at, network + 10, 2))
                // Sequence and ACK number; window and checksum; TSval and TSecr.
                || is_in(at, tcp + 4, 8)
                || is_in(at, tcp + 14, 4)
                || is_in(at, tcp + 24, 8);
            fixed[at] = if may_differ { 0 } else { 0xff };
            at += 1;
        }
        let (mut head, mut tail) = ([0; HEAD_BYTES], [0; TAIL_BYTES]);
        head.copy_from_slice(fixed.split_at(HEAD_BYTES).0);
        let tail_at = bytes - TAIL_BYTES;
        tail.copy_from_slice(fixed.split_at(tail_at).1.split_at(TAIL_BYTES).0);
        let ipv4 = if is_v4 { [network + 4, network + 10] } else { [0, 0] };
        Self { head, tail, bytes, ipv4, tcp: tcp - tail_at, has_timestamp }
    }

    /// The record of an ACK that is like the one with the record `before`.
    #[inline(always)]
    fn read(&self, tail: &[u8; TAIL_BYTES], before: AckRecord) -> AckRecord {
        if self.has_timestamp {
            let tcp = timestamped(tail);
            let (ts_value, ts_echo) = (word32(tcp, 24), word32(tcp, 28));
            return AckRecord { ts_value, ts_echo, ..said(tcp, before) };
        }
        match tail.get(self.tcp..).and_then(|tcp| tcp.first_chunk::<20>()) {
            Some(tcp) => said(tcp, before),
            None => before,
        }
    }

    /// What the fields of an IPv4 header add up to that may differ. The same for all of IPv6.
    #[inline(always)]
    fn ip_sum(&self, head: &[u8; HEAD_BYTES]) -> u16 {
        let word = |at: usize| {
            let word = head.get(at..).and_then(|it| it.first_chunk());
            u32::from(word.map_or(0, |it| u16::from_ne_bytes(*it)))
        };
        let sum = word(self.ipv4[0]) + word(self.ipv4[1]);
        ((sum >> 16) + (sum & 0xffff)) as u16
    }

    /// What the TCP header adds up to. The pseudo-header is the same for all.
    #[inline(always)]
    fn tcp_sum(&self, tail: &[u8; TAIL_BYTES]) -> u16 {
        let bytes = if self.has_timestamp { 32 } else { 20 };
        let header = tail.get(self.tcp..self.tcp + bytes).unwrap_or_default();
        let words = header.as_chunks::<4>().0.iter();
        folded(words.map(|word| u64::from(u32::from_ne_bytes(*word))).sum())
    }
}

/// `before` with the sequence and ACK number and the window of the TCP header `tcp`.
#[inline(always)]
fn said<const N: usize>(tcp: &[u8; N], before: AckRecord) -> AckRecord {
    let (seq, ack) = (SeqNumber(word32(tcp, 4)), SeqNumber(word32(tcp, 8)));
    AckRecord { seq, ack, window: u16::from_be_bytes([tcp[14], tcp[15]]), ..before }
}

/// The TCP header at the end of a frame, if it has a timestamp and no other option: nothing is padded then.
#[inline(always)]
fn timestamped(tail: &[u8; TAIL_BYTES]) -> &[u8; TIMESTAMPED_BYTES] {
    tail.last_chunk().unwrap_or(&[0; TIMESTAMPED_BYTES])
}

/// Whether the timestamp is in its usual place (RFC 7323, appendix A).
fn has_usual_timestamp(tcp: &[u8; TIMESTAMPED_BYTES]) -> bool {
    word32(tcp, 20) == 0x0101_080a
}

#[inline(always)]
fn word32<const N: usize>(header: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

/// Whether `a` and `b` are equal where `fixed` has ones. `N` is a multiple of 8.
#[inline(always)]
fn is_equal<const N: usize>(a: &[u8; N], b: &[u8; N], fixed: &[u8; N]) -> bool {
    let differs = |at| (word(a, at) ^ word(b, at)) & word(fixed, at);
    (0..N / 8).fold(0, |differing, at| differing | differs(at)) == 0
}

#[inline(always)]
fn word<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[..].as_chunks().0[at])
}

/// The sum of 16-bit words in ones' complement. Zero only if all of them are.
#[inline(always)]
const fn folded(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

const fn is_in(at: usize, start: usize, bytes: usize) -> bool {
    at >= start && at < start + bytes
}

/// Every length is another, but for IPv4 with padding beside IPv6 on raw IP. Raw IPv4 without a timestamp is shorter
/// than the tail, and never expected.
static LAYOUTS: [Layout; 8] = {
    const E: usize = ETHERNET_HEADER_BYTES;
    [
        Layout::new(E, true, true, 66),
        Layout::new(E, false, true, 86),
        Layout::new(E, true, false, 54),
        // Padded to the shortest frame.
        Layout::new(E, true, false, 60),
        Layout::new(E, false, false, 74),
        Layout::new(0, true, true, 52),
        Layout::new(0, false, true, 72),
        Layout::new(0, false, false, 60),
    ]
};

/// Head and tail together cover every layout.
const HEAD_BYTES: usize = 40;
const TAIL_BYTES: usize = 48;
/// A TCP header with a timestamp.
const TIMESTAMPED_BYTES: usize = 32;
/// An ACK over Ethernet and IPv6 with a timestamp.
const MOST_BYTES: usize = 86;

#[cfg(test)]
mod tests;
