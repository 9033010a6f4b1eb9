//! A segment as the connection sees it: header values, and its payload in its original buffer.
//!
//! Separate from the wire format: addresses, checksums and lengths have been checked before, and the
//! connection keeps payload by taking the buffer, never by copying.

use core::ops::Range;

use rxo_frame::Instant;
use rxo_wire::tcp::{FixedHeader, MIN_HEADER_BYTES};
use rxo_wire::{Offsets, SeqNumber, TcpFlags, class_and_length};

use crate::options::SegmentOptions;

/// One received segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment<B> {
    /// SEG.SEQ: the sequence number.
    pub seq: SeqNumber,
    /// SEG.ACK: the ACK number; meaningless without the ACK flag.
    pub ack: SeqNumber,
    /// The control bits of the TCP header.
    pub flags: TcpFlags,
    /// SEG.WND: the window as in the header, unscaled.
    pub window: u16,
    /// The TCP options of the segment, as far as this crate supports them.
    pub options: SegmentOptions,
    /// The payload of the segment; `None` if it has none.
    pub payload: Option<Payload<B>>,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// The arrival time of the frame. Round-trip times are measured up to it, so waiting in an aggregate does
    /// not lengthen them.
    pub arrived_at: Instant,
}

impl<B> Segment<B> {
    /// Returns SEG.LEN: the payload length in bytes, plus one for each of SYN and FIN (RFC 9293, section 3.4).
    #[must_use]
    pub fn len(&self) -> u32 {
        let controls = u32::from(self.has(TcpFlags::SYN)) + u32::from(self.has(TcpFlags::FIN));
        self.text_bytes() + controls
    }

    /// Returns `true` if the segment occupies no sequence numbers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the length of the payload, in bytes.
    #[must_use]
    pub fn text_bytes(&self) -> u32 {
        self.payload.as_ref().map_or(0, Payload::bytes)
    }

    /// Returns `true` if all of `flags` are set.
    #[must_use]
    pub const fn has_all(&self, flags: TcpFlags) -> bool {
        self.flags.contains(flags)
    }

    /// Returns `true` if any of `flags` is set.
    #[must_use]
    pub const fn has(&self, flags: TcpFlags) -> bool {
        self.flags.intersects(flags)
    }
}

impl<B: AsRef<[u8]>> Segment<B> {
    /// Returns the segment in the frame `buffer`, whose headers begin at the offsets `at`. The ends of its
    /// header and data are read from the frame, not from `at`. `None` if `at` is out of bounds. Takes the
    /// buffer and copies nothing.
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

/// The payload of a segment, which stays in its original buffer. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload<B> {
    buffer: B,
    /// The offset of the first payload byte in the buffer; less than `end`.
    start: u32,
    end: u32,
}

impl<B: AsRef<[u8]>> Payload<B> {
    /// Creates the payload that consists of the bytes of `buffer` in `range`. `None` if `range` is empty, not
    /// inside `buffer`, or longer than the payload of an IP packet.
    #[inline]
    pub fn new(buffer: B, range: Range<usize>) -> Option<Self> {
        let is_inside = range.end <= buffer.as_ref().len();
        is_inside.then(|| Self::known(buffer, range)).flatten()
    }

    /// Returns the bytes of the payload.
    pub(crate) fn as_slice(&self) -> &[u8] {
        self.buffer.as_ref().get(self.range()).unwrap_or_default()
    }
}

impl<B> Payload<B> {
    /// Creates a payload like [`Payload::new`], but does not check that `range` lies inside `buffer`: the
    /// caller must ensure this. `None` if the range is empty, or longer than the payload of an IP packet.
    #[inline(always)]
    pub(crate) fn known(buffer: B, range: Range<usize>) -> Option<Self> {
        let is_text = range.start < range.end && range.end - range.start <= MAX_TEXT_BYTES;
        let (start, end) = (range.start as u32, u32::try_from(range.end).ok()?);
        is_text.then_some(Self { buffer, start, end })
    }

    /// Returns the length of the payload in bytes; never 0.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u32 {
        self.end - self.start
    }

    /// Returns the range of the payload in the buffer.
    #[inline]
    pub(crate) fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Returns the payload without its first `bytes` bytes; `None` if nothing is left.
    pub(crate) fn without_front(mut self, bytes: u32) -> Option<Self> {
        self.start = self.start.saturating_add(bytes);
        (self.start < self.end).then_some(self)
    }

    /// Returns the first `bytes` bytes of the payload; `None` if `bytes` is 0.
    pub(crate) fn truncated(mut self, bytes: u32) -> Option<Self> {
        self.end = self.end.min(self.start.saturating_add(bytes));
        (self.start < self.end).then_some(self)
    }

    /// Replaces the buffer by the one that `exchange` returns for the payload. The old buffer stays if
    /// `exchange` returns `None`, or returns a buffer whose length differs from that of the payload.
    pub(crate) fn exchange(&mut self, exchange: impl FnOnce(&B, &[u8]) -> Option<B>)
    where
        B: AsRef<[u8]>,
    {
        let new = exchange(&self.buffer, self.as_slice());
        if let Some(buffer) = new.filter(|new| new.as_ref().len() == self.range().len()) {
            *self = Self { buffer, start: 0, end: self.bytes() };
        }
    }

    /// Returns the buffer and the range of the payload in it.
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
    /// The transport does not support ECN.
    #[default]
    NotCapable,
    /// ECT(1): the transport supports ECN.
    Capable1,
    /// ECT(0): the transport supports ECN. This crate sends this mark on data when ECN is in use.
    Capable0,
    /// CE: a router has detected congestion.
    Congestion,
}

impl Ecn {
    /// Returns the ECN field in the lower two bits of a type of service or traffic class.
    #[must_use]
    pub const fn from_traffic_class(class: u8) -> Self {
        match class & 3 {
            0 => Self::NotCapable,
            1 => Self::Capable1,
            2 => Self::Capable0,
            _ => Self::Congestion,
        }
    }

    /// Returns the two bits of the ECN field as in the IP header.
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

/// The longest payload of an IP packet in bytes, jumbograms excluded.
const MAX_TEXT_BYTES: usize = 65_535;
