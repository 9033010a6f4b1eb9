//! Predicts the next pure ACK of the connection whose ACK was gathered last, and recognises it with one
//! comparison.
//!
//! ACKs of a connection come in bursts. Consecutive ACKs differ only in the IPv4 ID and checksum, the sequence
//! and ACK numbers, the window, the TCP checksum, the timestamp values, and in padding. If all other bytes are
//! equal and both checksums are right, every check has the result that it had for the previous ACK, so no check
//! is repeated. The engine predicts data segments in this way, too, with another row of the table in
//! [`rxo_wire::layout`].
//!
//! Contract: a frame that takes the slow path, or the ACK of another connection, may change the results of the
//! checks, so the code that handles such a frame calls [`Expected::forget`]. The prediction is valid only for
//! the run ([`gather`](super::gather)) that the last gathered ACK belongs to. A batch begins without a
//! prediction.

use rxo_frame::{Frame, LinkKind};
use rxo_wire::layout;
use rxo_wire::tcp::AckRecord;
use rxo_wire::{ETHERNET_HEADER_BYTES, IpVersion, SeqNumber, TcpFlags};

use super::gather::AckAndWindow;

/// The prediction of the next ACK: the last ACK, and the sums that its successor must match. By default there
/// is no prediction.
#[derive(Debug)]
pub(super) struct Expected {
    /// The index in [`LAYOUTS`] of the last ACK's layout if that ACK carries no ECN mark, as nearly all do;
    /// otherwise [`Number::Nothing`].
    layout: Number,
    /// The index in [`LAYOUTS`] of the last ACK's layout if that ACK carries an ECN mark; otherwise
    /// [`Number::Nothing`].
    marked: Number,
    /// The ECN field in the IP header of the last ACK; meaningful only if `marked` is not [`Number::Nothing`].
    ecn: u8,
    /// The bytes of the last ACK.
    before: Before,
    /// The sum of the last ACK's IPv4 ID and IP header checksum; equal for every valid successor.
    ip_sum: u16,
    /// The sum of the last ACK's TCP header; `None` if software has not verified its checksum.
    tcp_sum: Option<u16>,
}

/// The bytes of an ACK, aligned to 16 so that they can be a memory operand of a vector instruction.
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
    /// Drops the prediction, so that the next ACK is checked in full.
    #[inline]
    pub(super) fn forget(&mut self) {
        (self.layout, self.marked) = (Number::Nothing, Number::Nothing);
    }

    /// Returns `true` if the predicted ACK carries an ECN mark.
    #[inline]
    pub(super) fn is_marked(&self) -> bool {
        self.marked != Number::Nothing
    }

    /// Predicts the ACK that follows `frame`, the pure ACK that was gathered last. `ecn` is the ECN field of
    /// the IP header of `frame`. The prediction matches only if the next ACK has the same ECN field, and a
    /// timestamp exactly if `has_timestamp` is `true`.
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

    /// If `frame` is the predicted ACK, and the prediction has no ECN mark: writes the fields of the ACK into
    /// `record`, and returns its ACK number and window. Otherwise returns `None`, with `record` unchanged.
    #[inline(always)]
    pub(super) fn read(
        &self,
        frame: &Frame<&[u8]>,
        record: &mut AckRecord,
    ) -> Option<AckAndWindow> {
        self.read_like(self.layout, frame, record)
    }

    /// Reads the predicted ACK if it carries an ECN mark, as [`Expected::read`] does for ACKs without one. The
    /// function is separate, so that [`Expected::read`] can treat the ECN field as a constant.
    #[inline(never)]
    pub(super) fn read_marked(
        &self,
        frame: &Frame<&[u8]>,
        record: &mut AckRecord,
    ) -> Option<AckAndWindow> {
        let ack = self.read_like(self.marked, frame, record)?;
        record.ecn = self.ecn;
        Some(ack)
    }

    #[inline(always)]
    fn read_like(
        &self,
        layout: Number,
        frame: &Frame<&[u8]>,
        record: &mut AckRecord,
    ) -> Option<AckAndWindow> {
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

    /// Implements [`Expected::read`] with the layout as a compile-time constant, so that only the bytes that
    /// must be equal are compared.
    #[inline(always)]
    fn read_as<const LAYOUT: usize>(
        &self,
        frame: &Frame<&[u8]>,
        record: &mut AckRecord,
    ) -> Option<AckAndWindow> {
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

/// A layout: the offsets of a pure ACK's headers, and the bytes that may differ from one ACK to the next.
#[derive(Debug)]
struct Layout {
    /// The positions, counted from the IP header, at which consecutive ACKs must have equal bytes.
    row: layout::Layout,
    /// The length of the frame, in bytes.
    bytes: usize,
    version: IpVersion,
    /// The offset of the IP header in the frame.
    network: usize,
    /// The offset of the TCP header in the frame.
    tcp: usize,
    has_timestamp: bool,
}

impl Layout {
    /// Returns the index in [`LAYOUTS`] of the pure ACK in `frame`; `None` if it has an uncommon layout.
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

    /// Returns `true` if `frame` equals `before` in all bytes that must be equal.
    #[inline(always)]
    fn is_like(&self, frame: &[u8], before: &[u8; MOST_BYTES]) -> bool {
        let link = layout::differing_link(before, frame, self.network);
        let packets = (before.get(self.network..), frame.get(self.network..));
        let (Some(last), Some(next)) = packets else { return false };
        link | self.row.differing(last, next) == 0
    }

    /// Writes the fields of an ACK that matches the prediction into `record`, without the ECN mark. Returns the
    /// ACK number and the window. The fields are written one by one, which needs few registers.
    #[inline(always)]
    fn read(&self, frame: &[u8], arrived_at_ns: u64, record: &mut AckRecord) -> AckAndWindow {
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

    /// Returns the ones' complement sum of the IPv4 ID and header checksum, which stays the same as long as all
    /// other fields stay the same. Returns 0 for IPv6, which has no such fields.
    #[inline(always)]
    fn ip_sum(&self, frame: &[u8]) -> u16 {
        if self.version == IpVersion::V6 {
            return 0;
        }
        let field = |at: usize| word16(frame, self.network + at);
        let (sum, carries) = field(4).overflowing_add(field(10));
        sum + u16::from(carries)
    }

    /// Returns the ones' complement sum of the TCP header. The pseudo-header is not included, because it is
    /// constant for all ACKs of a flow.
    #[inline(always)]
    fn tcp_sum(&self, frame: &[u8]) -> u16 {
        let bytes = if self.has_timestamp { 32 } else { 20 };
        let words = (0..bytes / 4).map(|number| u64::from(word32(frame, self.tcp + 4 * number)));
        folded(words.sum())
    }
}

/// Returns `true` if the timestamp follows two NOP options, as in RFC 7323, appendix A.
fn has_usual_timestamp(layout: &Layout, frame: &[u8]) -> bool {
    u32::from_be(word32(frame, layout.tcp + 20)) == 0x0101_080a
}

/// Returns the 32-bit word at offset `at`, in the byte order of memory; 0 beyond the end.
#[inline]
fn word32(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.map_or(0, |word| u32::from_ne_bytes(*word))
}

#[inline]
fn word16(bytes: &[u8], at: usize) -> u16 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.map_or(0, |word| u16::from_ne_bytes(*word))
}

/// Folds a sum of 32-bit words to 16 bits in ones' complement. The result is zero only if all words are zero.
#[inline]
const fn folded(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

/// The known layouts. Their frame lengths differ, except those of IPv4 with padding and IPv6 over raw IP,
/// both 60 bytes.
const LAYOUTS: [Layout; 9] = {
    const E: usize = ETHERNET_HEADER_BYTES;
    [
        Layout::new(E, IpVersion::V4, true, 66),
        Layout::new(E, IpVersion::V6, true, 86),
        Layout::new(E, IpVersion::V4, false, 54),
        // Padded to the minimum Ethernet frame.
        Layout::new(E, IpVersion::V4, false, 60),
        Layout::new(E, IpVersion::V6, false, 74),
        Layout::new(0, IpVersion::V4, true, 52),
        Layout::new(0, IpVersion::V6, true, 72),
        Layout::new(0, IpVersion::V4, false, 40),
        Layout::new(0, IpVersion::V6, false, 60),
    ]
};

/// An index into [`LAYOUTS`], or `Nothing` without a prediction. The type is an enum, so that indexing needs no
/// bounds check.
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

/// The length in bytes of a pure ACK in the longest layout: Ethernet, IPv6, TCP with a timestamp.
const MOST_BYTES: usize = 86;

#[cfg(test)]
mod tests;
