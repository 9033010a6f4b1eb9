//! A parsed ACK frame, prepared for writing similar frames.
//!
//! A pattern is separate from the template, because the parsing of a frame does not depend on the fields of
//! later ACKs. The pattern stores the checksum of the headers without the fields that differ between ACKs. The
//! checksum of an ACK is that stored sum plus the sum of the ACK's own fields. This is the incremental update
//! of RFC 1624, with the old fields subtracted once instead of for every ACK.

use core::fmt;

use rxo_frame::{ChecksumStatus, Frame, LinkKind};
use rxo_wire::checksum::Sum;
use rxo_wire::tcp::{CHECKSUM_AT as TCP_CHECKSUM_AT, OptionLayout, Timestamp};
use rxo_wire::{IpVersion, Offsets, Parsed, TcpFlags, TcpSegment, Transport, parse, parse_ip};

use crate::AckNumbers;
use crate::expanded::{AckSlot, SLOT_BYTES};

/// The reason for which a frame cannot be the first frame of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotATemplate {
    /// The frame is not a pure ACK: it is malformed, a fragment, not TCP, a segment with payload, a GSO frame,
    /// or a segment with a flag other than ACK, ECE, CWR and AE.
    NotAPureAck,
    /// The frame has options besides the timestamp, or the timestamp is not at its usual offset.
    Options,
    /// The frame is longer than an [`AckSlot`], or its TCP header begins at too large an offset.
    TooLong,
    /// The frame's checksum is partial, and the checksum position in its metadata is not the checksum field of
    /// the TCP header.
    Checksum,
}

/// A parsed ACK frame, from which frames with other ACK numbers, windows and timestamps are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern<'a> {
    frame: Frame<&'a [u8]>,
    at: Offsets,
    is_v4: bool,
    is_seed: bool,
    pub(crate) has_timestamp: bool,
    id: u16,
    first: AckNumbers,
    /// The one's complement sum of the IPv4 header without its identification field, folded to 16 bits.
    ip_sum: u16,
    /// The one's complement sum of pseudo-header and TCP header without the fields that differ between ACKs.
    /// Folded to 16 bits, so that adding these fields cannot overflow.
    tcp_sum: u16,
}

/// The offset of the identification in the IPv4 header, in bytes.
const ID_AT: usize = 4;
const IP_CHECKSUM_AT: usize = 10;
/// The offset of the acknowledgement number in the TCP header, in bytes.
const ACK_AT: usize = 8;
const WINDOW_AT: usize = 14;
const TSVAL_AT: usize = 24;
const TSECR_AT: usize = 28;
/// The length of an IPv4 header without options, in bytes.
const IP_BYTES: usize = 20;
/// The length of a TCP header without options, in bytes.
const FIXED_BYTES: usize = 20;
const TIMESTAMP_BYTES: usize = 12;
/// An exclusive limit for the offset of the TCP header in bytes, so that the whole header is inside a slot. The
/// limit is a power of two, so that reducing an offset modulo this limit is cheap; the reduction lets the
/// compiler omit bounds checks.
const LAST_TRANSPORT: usize = SLOT_BYTES - FIXED_BYTES - TIMESTAMP_BYTES;

impl<'a> Pattern<'a> {
    /// Parses the ACK `frame`, whose first header is `link`.
    pub(crate) fn read(frame: Frame<&'a [u8]>, link: LinkKind) -> Result<Self, NotATemplate> {
        let parsed = link.read(frame.bytes, parse, parse_ip);
        Self::of(&parsed.map_err(|_| NotATemplate::NotAPureAck)?, frame)
    }

    /// Creates the pattern of the ACK `frame`; `parsed` contains its parsed headers.
    #[inline(always)]
    pub(crate) fn of(parsed: &Parsed, frame: Frame<&'a [u8]>) -> Result<Self, NotATemplate> {
        let tcp = pure_ack(parsed, frame)?;
        let has_timestamp = match tcp.options {
            OptionLayout::None => false,
            OptionLayout::AlignedTimestamp => true,
            _ => return Err(NotATemplate::Options),
        };
        let transport = parsed.at.transport as usize;
        if frame.bytes.len() > SLOT_BYTES || transport >= LAST_TRANSPORT {
            return Err(NotATemplate::TooLong);
        }
        let first = AckNumbers { ack: tcp.ack, window: tcp.window, timestamp: tcp.timestamp };
        let ip_checksum = word(frame.bytes, parsed.at.network as usize + IP_CHECKSUM_AT);
        Ok(Self {
            frame,
            at: parsed.at,
            is_v4: parsed.ip.version == IpVersion::V4,
            is_seed: is_seed(frame.checksum, transport)?,
            has_timestamp,
            id: parsed.ip.id,
            first,
            ip_sum: without(ip_checksum, Sum::word(parsed.ip.id)),
            tcp_sum: without(tcp.checksum, sum_of(&first, has_timestamp)),
        })
    }

    /// Returns the ACK number, window and timestamp of the original frame.
    pub(crate) const fn numbers(&self) -> AckNumbers {
        self.first
    }

    /// Returns the bytes of the original frame.
    #[inline(always)]
    pub(crate) const fn bytes(&self) -> &'a [u8] {
        self.frame.bytes
    }

    /// Returns the length of each frame of this pattern in bytes, and the metadata of all frames.
    pub(crate) fn like(&self) -> Frame<usize> {
        self.frame.with_bytes(self.frame.bytes.len())
    }

    /// Returns a slot that contains the original frame.
    #[inline]
    pub(crate) fn slot(&self) -> AckSlot {
        let mut slot = AckSlot::EMPTY;
        slot.bytes.iter_mut().zip(self.frame.bytes).for_each(|(to, from)| *to = *from);
        slot
    }

    /// Writes `numbers` into `copy`, a copy of the frame, and adds `id_step` to its identification.
    #[inline(always)]
    pub(crate) fn change(&self, copy: &mut [u8], numbers: &AckNumbers, id_step: u16) {
        let at = (self.at.network as usize, self.at.transport as usize);
        self.change_at(at, copy, numbers, id_step);
    }

    /// Writes `numbers` into a slot like [`Pattern::change`]. The fixed length of the slot lets the compiler
    /// omit bounds checks.
    #[inline(always)]
    pub(crate) fn change_slot(&self, slot: &mut AckSlot, numbers: &AckNumbers, id_step: u16) {
        let (network, transport) = (self.at.network as usize, self.at.transport as usize);
        let at = (network % LAST_TRANSPORT, transport % LAST_TRANSPORT);
        self.change_at(at, &mut slot.bytes, numbers, id_step);
    }

    #[inline(always)]
    fn change_at(
        &self,
        (network, transport): (usize, usize),
        copy: &mut [u8],
        numbers: &AckNumbers,
        id_step: u16,
    ) {
        if self.is_v4
            && let Some(ip) = copy.get_mut(network..).and_then(<[u8]>::first_chunk_mut)
        {
            self.write_id(self.id.wrapping_add(id_step), ip);
        }
        let tcp = copy.get_mut(transport..).and_then(<[u8]>::split_first_chunk_mut);
        if let Some((fixed, options)) = tcp {
            self.write_numbers(numbers, fixed, options.first_chunk_mut());
        }
    }

    #[inline(always)]
    fn write_id(&self, id: u16, ip: &mut [u8; IP_BYTES]) {
        put_word(ip, ID_AT, id);
        put_word(ip, IP_CHECKSUM_AT, !add(self.ip_sum, id));
    }

    #[inline(always)]
    fn write_numbers(
        &self,
        numbers: &AckNumbers,
        fixed: &mut [u8; FIXED_BYTES],
        options: Option<&mut [u8; TIMESTAMP_BYTES]>,
    ) {
        put_long(fixed, ACK_AT, numbers.ack.0);
        put_word(fixed, WINDOW_AT, numbers.window);
        if self.has_timestamp
            && let Some(options) = options
        {
            put_long(options, TSVAL_AT - FIXED_BYTES, numbers.timestamp.value);
            put_long(options, TSECR_AT - FIXED_BYTES, numbers.timestamp.echo);
        }
        // A partial checksum covers only addresses, protocol and length, which are equal in every ACK.
        if !self.is_seed {
            let sum = Sum::word(self.tcp_sum) + sum_of(numbers, self.has_timestamp);
            put_word(fixed, TCP_CHECKSUM_AT, sum.checksum());
        }
    }
}

fn pure_ack(parsed: &Parsed, frame: Frame<&[u8]>) -> Result<TcpSegment, NotATemplate> {
    let Transport::Tcp(tcp) = parsed.transport else { return Err(NotATemplate::NotAPureAck) };
    let marks = TcpFlags::ECE | TcpFlags::CWR | TcpFlags::AE;
    let is_pure = tcp.flags.without(marks) == TcpFlags::ACK && parsed.payload_bytes() == 0;
    if is_pure && frame.gso.is_none() { Ok(tcp) } else { Err(NotATemplate::NotAPureAck) }
}

fn is_seed(checksum: ChecksumStatus, transport: usize) -> Result<bool, NotATemplate> {
    match checksum {
        ChecksumStatus::Partial { start, offset } => {
            let is_ours = (usize::from(start), usize::from(offset)) == (transport, TCP_CHECKSUM_AT);
            if is_ours { Ok(true) } else { Err(NotATemplate::Checksum) }
        }
        ChecksumStatus::Unknown | ChecksumStatus::Verified => Ok(false),
    }
}

/// Adds two 16-bit words in one's complement, with fewer instructions than folding a [`Sum`].
#[inline(always)]
fn add(one: u16, other: u16) -> u16 {
    let (sum, carry) = one.overflowing_add(other);
    sum + u16::from(carry)
}

/// Returns the one's complement sum of a header minus the sum `part`, computed from the header's `checksum`
/// field.
fn without(checksum: u16, part: Sum) -> u16 {
    (Sum::word(!checksum) - part).fold()
}

#[inline(always)]
fn sum_of(numbers: &AckNumbers, has_timestamp: bool) -> Sum {
    let Timestamp { value, echo } = numbers.timestamp;
    let (ack, window) = (numbers.ack.0, u32::from(numbers.window));
    if has_timestamp { Sum::longs([ack, window, value, echo]) } else { Sum::longs([ack, window]) }
}

fn word(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u16::from_be_bytes(*word))
}

#[inline(always)]
fn put_word<const N: usize>(bytes: &mut [u8; N], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

#[inline(always)]
fn put_long<const N: usize>(bytes: &mut [u8; N], at: usize, long: u32) {
    bytes[at..at + 4].copy_from_slice(&long.to_be_bytes());
}

impl fmt::Display for NotATemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAPureAck => "the frame is not a pure ACK; send it unchanged",
            Self::Options => "the ACK has options besides a timestamp; send it unchanged",
            Self::TooLong => "the ACK is longer than 96 bytes or its TCP header begins after 63",
            Self::Checksum => "the ACK's partial checksum is outside its TCP header",
        })
    }
}

impl core::error::Error for NotATemplate {}
