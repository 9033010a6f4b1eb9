//! A segment as the connection sees it: header values, and its payload in the buffer it came in.
//!
//! Separate from the wire: addresses, checksums and lengths are checked before a segment comes here, and
//! the connection keeps payload by taking the buffer, never by copying.

use core::ops::Range;

use rxo_frame::Instant;
use rxo_wire::tcp::{FixedHeader, MIN_HEADER_BYTES};
use rxo_wire::{Offsets, Parsed, SeqNumber, TcpFlags, Transport, class_and_length};

use crate::options::SegmentOptions;

/// One segment that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment<B> {
    /// SEG.SEQ.
    pub seq: SeqNumber,
    /// SEG.ACK; means nothing without the ACK flag.
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: TcpFlags,
    /// SEG.WND as it stands in the header, unscaled.
    pub window: u16,
    /// The options that this crate knows.
    pub options: SegmentOptions,
    /// The text; `None` if there is none.
    pub payload: Option<Payload<B>>,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// When the frame arrived. Round-trip times are measured to here, so waiting in an aggregate
    /// does not lengthen them.
    pub arrived_at: Instant,
}

impl<B> Segment<B> {
    /// SEG.LEN: text, and one for each of SYN and FIN (RFC 9293, section 3.4).
    #[must_use]
    pub fn len(&self) -> u32 {
        let controls = u32::from(self.has(TcpFlags::SYN)) + u32::from(self.has(TcpFlags::FIN));
        self.text_bytes() + controls
    }

    /// Whether it takes no sequence numbers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length of its text, in bytes.
    #[must_use]
    pub fn text_bytes(&self) -> u32 {
        self.payload.as_ref().map_or(0, Payload::bytes)
    }

    /// Whether all of `flags` are set.
    #[must_use]
    pub const fn has_all(&self, flags: TcpFlags) -> bool {
        self.flags.contains(flags)
    }

    /// Whether any of `flags` is set.
    #[must_use]
    pub const fn has(&self, flags: TcpFlags) -> bool {
        self.flags.intersects(flags)
    }
}

impl<B: AsRef<[u8]>> Segment<B> {
    /// The segment in the frame `buffer`, whose headers are `parsed`. `None` if it is not TCP. Takes the
    /// buffer; copies nothing.
    #[must_use]
    pub fn of_frame(buffer: B, parsed: &Parsed, arrived_at: Instant) -> Option<Self> {
        let Transport::Tcp(tcp) = parsed.transport else { return None };
        let options = buffer.as_ref().get(parsed.at.tcp_options()).unwrap_or_default();
        Some(Self {
            seq: tcp.seq,
            ack: tcp.ack,
            flags: tcp.flags,
            window: tcp.window,
            options: SegmentOptions::read(options),
            payload: Payload::new(buffer, parsed.at.payload_range()),
            ecn: Ecn::from_traffic_class(parsed.ip.traffic_class),
            arrived_at,
        })
    }

    /// The segment in the frame `buffer`, whose headers are at `at`. Where its header and its text end is
    /// read from the frame, and not in `at`. `None` if `at` is out of bounds. Takes the buffer; copies
    /// nothing.
    #[inline]
    #[must_use]
    pub fn read(buffer: B, at: Offsets, arrived_at: Instant) -> Option<Self> {
        let (network, transport) = (at.network as usize, at.transport as usize);
        let bytes = buffer.as_ref();
        let (class, packet_bytes) = class_and_length(bytes.get(network..)?)?;
        let tcp = FixedHeader::of(bytes.get(transport..)?)?;
        let payload = transport + tcp.header_bytes();
        Some(Self {
            seq: tcp.seq(),
            ack: tcp.ack(),
            flags: tcp.flags(),
            window: tcp.window(),
            options: SegmentOptions::read(bytes.get(transport + MIN_HEADER_BYTES..payload)?),
            payload: Payload::new(buffer, payload..network + packet_bytes),
            ecn: Ecn::from_traffic_class(class),
            arrived_at,
        })
    }
}

/// Text that stays in the buffer it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload<B> {
    buffer: B,
    /// The first byte of the text in the buffer. Before `end`.
    start: u32,
    end: u32,
}

impl<B: AsRef<[u8]>> Payload<B> {
    /// The bytes of `buffer` in `range`. `None` if there are none, `range` is not inside `buffer`, or it is
    /// longer than the text of an IP packet.
    #[inline]
    pub fn new(buffer: B, range: Range<usize>) -> Option<Self> {
        let is_inside = range.end <= buffer.as_ref().len();
        is_inside.then(|| Self::known(buffer, range)).flatten()
    }

    /// The bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        self.buffer.as_ref().get(self.range()).unwrap_or_default()
    }
}

impl<B> Payload<B> {
    /// The bytes of `buffer` in `range`, which is known to be inside it. `None` as for [`Payload::new`].
    #[inline(always)]
    pub(crate) fn known(buffer: B, range: Range<usize>) -> Option<Self> {
        let is_text = range.start < range.end && range.end - range.start <= MAX_TEXT_BYTES;
        let (start, end) = (range.start as u32, u32::try_from(range.end).ok()?);
        is_text.then_some(Self { buffer, start, end })
    }

    /// The length in bytes; never 0.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u32 {
        self.end - self.start
    }

    /// Where the text is in the buffer.
    #[inline]
    pub(crate) fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The text without its first `bytes`; `None` if nothing is left.
    pub(crate) fn without_front(mut self, bytes: u32) -> Option<Self> {
        self.start = self.start.saturating_add(bytes);
        (self.start < self.end).then_some(self)
    }

    /// The first `bytes` of the text; `None` if there are none.
    pub(crate) fn truncated(mut self, bytes: u32) -> Option<Self> {
        self.end = self.end.min(self.start.saturating_add(bytes));
        (self.start < self.end).then_some(self)
    }

    /// Replaces the buffer by the one that `exchange` makes of the text, unless `exchange` gives `None` or
    /// a buffer of another length.
    pub(crate) fn exchange(&mut self, exchange: impl FnOnce(&B, &[u8]) -> Option<B>)
    where
        B: AsRef<[u8]>,
    {
        let new = exchange(&self.buffer, self.as_slice());
        if let Some(buffer) = new.filter(|new| new.as_ref().len() == self.range().len()) {
            *self = Self { buffer, start: 0, end: self.bytes() };
        }
    }

    /// The buffer, and where in it the text is.
    #[inline]
    #[must_use]
    pub fn into_parts(self) -> (B, Range<usize>) {
        let range = self.range();
        (self.buffer, range)
    }
}

/// The ECN field of an IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The transport does not know ECN.
    #[default]
    NotCapable,
    /// ECT(1).
    Capable1,
    /// ECT(0): what this crate sends on data when ECN is agreed.
    Capable0,
    /// CE: a router saw congestion.
    Congestion,
}

impl Ecn {
    /// From the lower two bits of a type of service or traffic class.
    #[must_use]
    pub const fn from_traffic_class(class: u8) -> Self {
        match class & 3 {
            0 => Self::NotCapable,
            1 => Self::Capable1,
            2 => Self::Capable0,
            _ => Self::Congestion,
        }
    }

    /// The two bits as they stand in the IP header.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotCapable => 0,
            Self::Capable1 => 1,
            Self::Capable0 => 2,
            Self::Congestion => 3,
        }
    }
}

/// No IP packet but a jumbogram carries more.
const MAX_TEXT_BYTES: usize = 65_535;
