//! The next pure ACK of the connection whose ACK was gathered last, recognised by one compare.
//!
//! ACKs of a connection come in bursts. Two of them differ in the IPv4 identification and checksum, the sequence and
//! ACK number, the window, the TCP checksum, the values of the timestamp, and in padding. If all other bytes are equal
//! and both checksums are right, all checks give the same answers as for the ACK before. So none is made again. The engine does the same for data, by another row of the table ([`rxo_wire::layout`]).
//!
//! Contract: what passes between two ACKs may change the answers, so whoever passes a frame on calls
//! [`Expected::forget`], and so does whoever gathers the ACK of another connection: what is expected belongs to the run of the
//! ACK gathered last. A batch begins with nothing expected.

use rxo_frame::{Frame, LinkKind};
use rxo_wire::layout;
use rxo_wire::tcp::AckRecord;
use rxo_wire::{ETHERNET_HEADER_BYTES, IpVersion, SeqNumber, TcpFlags};

use super::gather::Told;

/// What is expected. By default nothing.
#[derive(Debug)]
pub(super) struct Expected {
    /// Which of [`LAYOUTS`] the ACK before has, if it has no mark of ECN, as nearly all.
    layout: Number,
    /// Which it has otherwise.
    marked: Number,
    /// The ECN field of its IP header.
    ecn: u8,
    /// The ACK before.
    before: Before,
    /// What its IPv4 identification and checksum add up to.
    ip_sum: u16,
    /// What its TCP header adds up to; `None` if nobody has verified its checksum.
    tcp_sum: Option<u16>,
}

/// A frame that begins where a word of vectors does, which then is an operand that needs no load.
#[derive(Debug)]
#[repr(align(16))]
struct Before([u8; MOST_BYTES]);

impl Default for Expected {
    fn default() -> Self {
        let before = Before([0; MOST_BYTES]);
        let (layout, marked) = (Number::Nothing, Number::Nothing);
        Self { layout, marked, ecn: 0, before, ip_sum: 0, tcp_sum: None }
    }
}

impl Expected {
    /// Expects nothing.
    #[inline]
    pub(super) fn forget(&mut self) {
        (self.layout, self.marked) = (Number::Nothing, Number::Nothing);
    }

    /// Whether what is expected has a mark of ECN.
    #[inline]
    pub(super) fn is_marked(&self) -> bool {
        self.marked != Number::Nothing
    }

    /// Expects what follows `frame`, which is the pure ACK that was gathered last. `shape` is whether it has a timestamp, and
    /// the ECN field of its IP header, which is the same in the next.
    pub(super) fn learn(
        &mut self,
        link: LinkKind,
        frame: &Frame<&[u8]>,
        (has_timestamp, ecn): (bool, u8),
    ) {
        self.forget();
        let bytes = frame.bytes;
        let Some(number) = Layout::of(link, bytes, has_timestamp) else { return };
        let layout = &LAYOUTS[number];
        if layout.has_timestamp && !has_usual_timestamp(layout, bytes) {
            return;
        }
        let number = Number::ALL.get(number).copied().unwrap_or(Number::Nothing);
        if ecn == 0 {
            self.layout = number;
        } else {
            (self.marked, self.ecn) = (number, ecn);
        }
        self.before.0[..bytes.len()].copy_from_slice(bytes);
        self.ip_sum = layout.ip_sum(bytes);
        self.tcp_sum = (!frame.checksum.is_trusted()).then(|| layout.tcp_sum(bytes));
    }

    /// Writes the fields of `frame` into `record` if it is what is expected after an ACK without a mark. Returns what it
    /// tells. If it is not, `record` is as before.
    #[inline(always)]
    pub(super) fn read(&self, frame: &Frame<&[u8]>, record: &mut AckRecord) -> Option<Told> {
        self.read_like(self.layout, frame, record)
    }

    /// [`Expected::read`] after an ACK with a mark. Apart from it, so that the mark is a constant there.
    #[inline(never)]
    pub(super) fn read_marked(&self, frame: &Frame<&[u8]>, record: &mut AckRecord) -> Option<Told> {
        let told = self.read_like(self.marked, frame, record)?;
        record.ecn = self.ecn;
        Some(told)
    }

    #[inline(always)]
    fn read_like(
        &self,
        layout: Number,
        frame: &Frame<&[u8]>,
        record: &mut AckRecord,
    ) -> Option<Told> {
        match layout {
            Number::N0 => self.read_as::<0>(frame, record),
            Number::N1 => self.read_as::<1>(frame, record),
            Number::N2 => self.read_as::<2>(frame, record),
            Number::N3 => self.read_as::<3>(frame, record),
            Number::N4 => self.read_as::<4>(frame, record),
            Number::N5 => self.read_as::<5>(frame, record),
            Number::N6 => self.read_as::<6>(frame, record),
            Number::N7 => self.read_as::<7>(frame, record),
            Number::N8 => self.read_as::<8>(frame, record),
            Number::Nothing => None,
        }
    }

    /// [`Expected::read`] of a layout that is known where it is compiled, so that only what must be equal is compared.
    #[inline(always)]
    fn read_as<const LAYOUT: usize>(
        &self,
        frame: &Frame<&[u8]>,
        record: &mut AckRecord,
    ) -> Option<Told> {
        let layout = const { &LAYOUTS[LAYOUT] };
        let bytes = frame.bytes;
        if bytes.len() != layout.bytes || frame.gso.is_some() || frame.vlan.is_some() {
            return None;
        }
        if !layout.is_like(bytes, &self.before.0) || layout.ip_sum(bytes) != self.ip_sum {
            return None;
        }
        if !frame.checksum.is_trusted() && Some(layout.tcp_sum(bytes)) != self.tcp_sum {
            return None;
        }
        Some(layout.read(bytes, frame.arrived_at.as_nanos(), record))
    }
}

/// Where the headers of a pure ACK lie, and which of their bytes may differ from one ACK to the next.
#[derive(Debug)]
struct Layout {
    /// What must be equal from the IP header on.
    row: layout::Layout,
    /// The length of the frame.
    bytes: usize,
    version: IpVersion,
    /// Where the IP header begins.
    network: usize,
    /// Where the TCP header begins.
    tcp: usize,
    has_timestamp: bool,
}

impl Layout {
    /// The number of the layout of a pure ACK, if it is one of the usual.
    fn of(link: LinkKind, frame: &[u8], has_timestamp: bool) -> Option<usize> {
        let network = if link == LinkKind::RawIp { 0 } else { ETHERNET_HEADER_BYTES };
        let version = if frame.get(network)? >> 4 == 4 { IpVersion::V4 } else { IpVersion::V6 };
        let is_it = |layout: &Self| {
            layout.bytes == frame.len()
                && layout.has_timestamp == has_timestamp
                && layout.version == version
        };
        LAYOUTS.iter().position(is_it)
    }

    const fn new(network: usize, version: IpVersion, has_timestamp: bool, bytes: usize) -> Self {
        let ip_bytes = match version {
            IpVersion::V4 => 20,
            IpVersion::V6 => 40,
        };
        let row = layout::host_ack(version, if has_timestamp { 32 } else { 20 });
        Self { row, bytes, version, network, tcp: network + ip_bytes, has_timestamp }
    }

    /// Whether a frame of this layout is like the one before, where it must be.
    #[inline(always)]
    fn is_like(&self, frame: &[u8], before: &[u8; MOST_BYTES]) -> bool {
        let link = layout::differing_link(before, frame, self.network);
        let packets = (before.get(self.network..), frame.get(self.network..));
        let (Some(last), Some(next)) = packets else { return false };
        link | self.row.differing(last, next) == 0
    }

    /// Writes the record of an ACK that is like the one before, without its mark of ECN. Returns what it tells. Field by field, so that it takes few
    /// registers.
    #[inline(always)]
    fn read(&self, frame: &[u8], arrived_at_ns: u64, record: &mut AckRecord) -> Told {
        let word = |at: usize| u32::from_be(word32(frame, self.tcp + at));
        let stamp = |at: usize| if self.has_timestamp { word(at) } else { 0 };
        (record.flags, record.ecn) = (TcpFlags::ACK, 0);
        record.has_timestamp = self.has_timestamp;
        record.arrived_at_ns = arrived_at_ns;
        record.seq = SeqNumber(word(4));
        record.ts_value = stamp(24);
        record.ts_echo = stamp(28);
        let (ack, window) = (word(8), u16::from_be(word16(frame, self.tcp + 14)));
        (record.ack, record.window) = (SeqNumber(ack), window);
        (SeqNumber(ack), window)
    }

    /// What the fields of an IPv4 header add up to that may differ. The same for all of IPv6.
    #[inline(always)]
    fn ip_sum(&self, frame: &[u8]) -> u16 {
        if self.version == IpVersion::V6 {
            return 0;
        }
        let field = |at: usize| word16(frame, self.network + at);
        let (sum, carries) = field(4).overflowing_add(field(10));
        sum + u16::from(carries)
    }

    /// What the TCP header adds up to. The pseudo-header is the same for all.
    #[inline(always)]
    fn tcp_sum(&self, frame: &[u8]) -> u16 {
        let bytes = if self.has_timestamp { 32 } else { 20 };
        let words = (0..bytes / 4).map(|number| u64::from(word32(frame, self.tcp + 4 * number)));
        folded(words.sum())
    }
}

/// Whether the timestamp is in its usual place (RFC 7323, appendix A).
fn has_usual_timestamp(layout: &Layout, frame: &[u8]) -> bool {
    u32::from_be(word32(frame, layout.tcp + 20)) == 0x0101_080a
}

/// The word at `at` as it lies; 0 behind the end.
#[inline(always)]
fn word32(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.map_or(0, |word| u32::from_ne_bytes(*word))
}

#[inline(always)]
fn word16(bytes: &[u8], at: usize) -> u16 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.map_or(0, |word| u16::from_ne_bytes(*word))
}

/// The sum of 16-bit words in ones' complement. Zero only if all of them are.
#[inline(always)]
const fn folded(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

/// Every length is another, but for IPv4 with padding beside IPv6 on raw IP.
const LAYOUTS: [Layout; 9] = {
    const E: usize = ETHERNET_HEADER_BYTES;
    [
        Layout::new(E, IpVersion::V4, true, 66),
        Layout::new(E, IpVersion::V6, true, 86),
        Layout::new(E, IpVersion::V4, false, 54),
        // Padded to the shortest frame.
        Layout::new(E, IpVersion::V4, false, 60),
        Layout::new(E, IpVersion::V6, false, 74),
        Layout::new(0, IpVersion::V4, true, 52),
        Layout::new(0, IpVersion::V6, true, 72),
        Layout::new(0, IpVersion::V4, false, 40),
        Layout::new(0, IpVersion::V6, false, 60),
    ]
};

/// A number in [`LAYOUTS`], or nothing that is expected. An enum, so that its range needs no check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    N0,
    N1,
    N2,
    N3,
    N4,
    N5,
    N6,
    N7,
    N8,
    Nothing,
}

impl Number {
    const ALL: [Self; LAYOUTS.len()] =
        [Self::N0, Self::N1, Self::N2, Self::N3, Self::N4, Self::N5, Self::N6, Self::N7, Self::N8];
}

/// An ACK over Ethernet and IPv6 with a timestamp.
const MOST_BYTES: usize = 86;

#[cfg(test)]
mod tests;
