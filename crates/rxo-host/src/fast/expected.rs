//! The next pure ACK of the connection whose ACK was gathered last, recognised by one compare.
//!
//! ACKs of a connection come in bursts. Two of them differ in the IPv4 identification and checksum, the sequence and
//! ACK number, the window, the TCP checksum, the values of the timestamp, and in padding. If all other bytes are equal
//! and both checksums are right, then all checks have the answers that they had for the ACK before, so none is made
//! again. The engine does the same for data (`rxo-coalesce/src/engine/expected.rs`).
//!
//! Contract: what passes between two ACKs may change the answers, so whoever passes a frame on calls
//! [`Expected::forget`]; a batch begins with nothing expected.

use rxo_frame::{Frame, LinkKind};
use rxo_wire::ETHERNET_HEADER_BYTES;
use rxo_wire::tcp::AckRecord;

/// What is expected. By default nothing.
#[derive(Debug)]
pub(super) struct Expected {
    /// `None` if nothing is expected.
    layout: Option<&'static Layout>,
    /// The length of the ACK before, in bytes.
    bytes: usize,
    /// The first bytes of the ACK before.
    head: [u8; HEAD_BYTES],
    /// The last bytes of its headers.
    tail: [u8; TAIL_BYTES],
    /// What its IPv4 identification and checksum add up to.
    ip_sum: u16,
    /// What its TCP header adds up to; `None` if nobody has verified its checksum.
    tcp_sum: Option<u16>,
    /// The ECN field of its IP header.
    ecn: u8,
    /// The run in which it was gathered.
    run: u32,
}

impl Default for Expected {
    fn default() -> Self {
        Self {
            layout: None,
            bytes: 0,
            head: [0; HEAD_BYTES],
            tail: [0; TAIL_BYTES],
            ip_sum: 0,
            tcp_sum: None,
            ecn: 0,
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
        self.layout = None;
        let network = if link == LinkKind::RawIp { 0 } else { ETHERNET_HEADER_BYTES };
        let is_v4 = frame.bytes.get(network).is_some_and(|first| first >> 4 == 4);
        let layout = Layout::of(link, is_v4, record.has_timestamp);
        let (Some(head), Some(tail)) = (frame.bytes.first_chunk(), layout.tail(frame.bytes)) else {
            return;
        };
        (self.head, self.tail) = (*head, *tail);
        self.ip_sum = layout.ip_sum(frame.bytes);
        self.tcp_sum = (!frame.checksum.is_trusted()).then(|| layout.tcp_sum(frame.bytes));
        (self.bytes, self.ecn, self.run) = (frame.bytes.len(), record.ecn, run);
        self.layout = Some(layout);
    }

    /// The fields of `frame` if it is what is expected, and the run to which it belongs.
    #[inline(always)]
    pub(super) fn read(&self, frame: &Frame<&[u8]>) -> Option<(u32, AckRecord)> {
        let layout = self.layout?;
        let bytes = frame.bytes;
        let is_like = bytes.len() == self.bytes
            && is_equal(bytes.first_chunk()?, &self.head, &layout.head)
            && is_equal(layout.tail(bytes)?, &self.tail, &layout.tail)
            && layout.ip_sum(bytes) == self.ip_sum;
        if !is_like || frame.gso.is_some() || frame.vlan.is_some() {
            return None;
        }
        if !frame.checksum.is_trusted() && Some(layout.tcp_sum(bytes)) != self.tcp_sum {
            return None;
        }
        let segment = bytes.get(layout.tcp..layout.end)?;
        AckRecord::read(segment, self.ecn, frame.arrived_at.as_nanos())
            .map(|record| (self.run, record))
    }
}

/// Where the headers of a pure ACK lie, and which of their bytes may differ from one ACK to the next.
#[derive(Debug)]
struct Layout {
    /// Ones where bytes must be equal.
    head: [u8; HEAD_BYTES],
    tail: [u8; TAIL_BYTES],
    /// Where the tail begins.
    tail_at: usize,
    /// The first byte of the IPv4 header; `None` for IPv6.
    ipv4: Option<usize>,
    /// The first byte of the TCP header.
    tcp: usize,
    /// Behind the TCP header.
    end: usize,
}

impl Layout {
    #[inline]
    fn of(link: LinkKind, is_v4: bool, has_timestamp: bool) -> &'static Self {
        let link = usize::from(link != LinkKind::RawIp);
        &LAYOUTS[link << 2 | usize::from(is_v4) << 1 | usize::from(has_timestamp)]
    }

    const fn new(network: usize, is_v4: bool, has_timestamp: bool) -> Self {
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
        let tail_at = end.saturating_sub(TAIL_BYTES);
        tail.copy_from_slice(fixed.split_at(tail_at).1.split_at(TAIL_BYTES).0);
        let ipv4 = if is_v4 { Some(network) } else { None };
        Self { head, tail, tail_at, ipv4, tcp, end }
    }

    #[inline(always)]
    fn tail<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8; TAIL_BYTES]> {
        bytes.get(self.tail_at..)?.first_chunk()
    }

    /// What the fields of an IPv4 header add up to that may differ; 0 for IPv6.
    #[inline(always)]
    fn ip_sum(&self, bytes: &[u8]) -> u16 {
        let header = self.ipv4.and_then(|at| bytes.get(at..)?.first_chunk::<12>());
        header.map_or(0, |it| {
            let word = |at: usize| u32::from(u16::from_ne_bytes([it[at], it[at + 1]]));
            folded(u64::from(word(4) + word(10)))
        })
    }

    /// What the TCP header adds up to. The pseudo-header is the same for all.
    #[inline(always)]
    fn tcp_sum(&self, bytes: &[u8]) -> u16 {
        let header = bytes.get(self.tcp..self.end).unwrap_or_default();
        let words = header.as_chunks::<4>().0.iter();
        folded(words.map(|word| u64::from(u32::from_ne_bytes(*word))).sum())
    }
}

/// Whether `a` and `b` are equal where `fixed` has ones. `N` is a multiple of 8.
#[inline(always)]
fn is_equal<const N: usize>(a: &[u8; N], b: &[u8; N], fixed: &[u8; N]) -> bool {
    let [(a, _), (b, _), (fixed, _)] = [a, b, fixed].map(|bytes| bytes[..].as_chunks::<8>());
    let differing = a.iter().zip(b).zip(fixed).fold(0, |sum, ((a, b), fixed)| {
        let [a, b, fixed] = [a, b, fixed].map(|word| u64::from_ne_bytes(*word));
        sum | (a ^ b) & fixed
    });
    differing == 0
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

/// By link (raw IP, Ethernet), version of IP (6, 4), and whether there are timestamps.
static LAYOUTS: [Layout; 8] = {
    const E: usize = ETHERNET_HEADER_BYTES;
    [
        Layout::new(0, false, false),
        Layout::new(0, false, true),
        Layout::new(0, true, false),
        Layout::new(0, true, true),
        Layout::new(E, false, false),
        Layout::new(E, false, true),
        Layout::new(E, true, false),
        Layout::new(E, true, true),
    ]
};

/// Head and tail together cover the headers of every layout, of 40 to 86 bytes. A frame shorter than the tail, raw IPv4
/// without a timestamp, is never expected.
const HEAD_BYTES: usize = 40;
const TAIL_BYTES: usize = 48;
/// The headers of an ACK over Ethernet and IPv6 with a timestamp.
const MOST_BYTES: usize = 86;
