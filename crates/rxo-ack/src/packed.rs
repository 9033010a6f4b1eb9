//! A template in the bytes of one packet, for a device that expands it.
//!
//! ```text
//!  the first ACK as a frame | ACK number (4) window (2) TSval (4) TSecr (4) | the next ACK's | ...
//! ```
//!
//! After the IP packet of the first ACK, each later ACK has an entry of 14 bytes, in network byte order. The
//! format is private to rxo's `virtio:` driver and `rxo card`.

use rxo_frame::{Frame, LinkKind};
use rxo_wire::tcp::Timestamp;
use rxo_wire::{SeqNumber, parse, parse_ip};

use crate::AckNumbers;
use crate::pattern::Pattern;

/// The length in bytes of the entry of one later ACK: ACK number (4), window (2), TSval (4) and TSecr (4).
pub const PACKED_NUMBERS_BYTES: usize = 14;

/// The maximum number of ACKs after the first in a packed template. The limit bounds the work that a packet of
/// a hostile sender causes.
pub const MOST_PACKED_NUMBERS: usize = 1_024;

impl AckNumbers {
    /// Encodes these fields as the entry of one ACK in a packed template. The timestamp bytes are meaningless
    /// if the template has no timestamp.
    #[inline]
    #[must_use]
    pub fn to_packed(self) -> [u8; PACKED_NUMBERS_BYTES] {
        let mut bytes = [0; PACKED_NUMBERS_BYTES];
        bytes[..4].copy_from_slice(&self.ack.0.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.window.to_be_bytes());
        bytes[6..10].copy_from_slice(&self.timestamp.value.to_be_bytes());
        bytes[10..].copy_from_slice(&self.timestamp.echo.to_be_bytes());
        bytes
    }

    /// Decodes the entry of one ACK from a packed template.
    #[inline]
    #[must_use]
    pub const fn from_packed(bytes: &[u8; PACKED_NUMBERS_BYTES]) -> Self {
        let [a, b, c, d, w, x, v0, v1, v2, v3, e0, e1, e2, e3] = *bytes;
        let value = u32::from_be_bytes([v0, v1, v2, v3]);
        let echo = u32::from_be_bytes([e0, e1, e2, e3]);
        Self {
            ack: SeqNumber(u32::from_be_bytes([a, b, c, d])),
            window: u16::from_be_bytes([w, x]),
            timestamp: Timestamp { value, echo },
        }
    }
}

/// Calls `give` with each ACK of a packed template in order: first the frame of the first ACK, then one frame
/// for the entry of each later ACK, each with the next IPv4 identification. All ACKs have the metadata of
/// `frame`, but none is a GSO frame. A partial checksum stays partial. Returns the number of ACKs. Returns
/// `None`, without calling `give`, if the bytes are not a template or have more than [`MOST_PACKED_NUMBERS`]
/// entries. Does not allocate; O(ACKs).
///
/// # Examples
/// ```
/// use rxo_ack::{AckNumbers, expand_packed};
/// use rxo_frame::{Frame, Instant, LinkKind};
/// use rxo_wire::SeqNumber;
/// # use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
/// # use rxo_wire::{TcpFlags, checksum::Summer};
/// # let tcp = TcpHeader { flags: TcpFlags::ACK, ack: SeqNumber(2897), ..TcpHeader::default() };
/// # let ip = Ipv4Header { protocol: 6, payload_bytes: 20, ..Ipv4Header::default() };
/// # let mut packet = [0; 40];
/// # let segment = ip.write(&mut packet)?;
/// # tcp.write(segment)?;
/// # write_tcp_checksum(segment, ip.pseudo_header(), Summer::detect())?;
///
/// // `packet` acknowledges 2897; the numbers of a second ACK follow it.
/// let second = AckNumbers { ack: SeqNumber(5793), ..AckNumbers::default() };
/// let packed = [&packet[..], &second.to_packed()].concat();
/// let mut acks = Vec::new();
/// let packed = Frame::new(&packed[..], Instant::ZERO);
/// let count = expand_packed(packed, LinkKind::RawIp, &mut |ack| acks.push(ack.bytes.to_vec()));
/// assert_eq!((count, acks.len()), (Some(2), 2));
/// assert_eq!(acks[0], packet);
/// assert_eq!(acks[1][28..32], 5793_u32.to_be_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn expand_packed(
    frame: Frame<&[u8]>,
    link: LinkKind,
    give: &mut dyn FnMut(Frame<&[u8]>),
) -> Option<usize> {
    let parsed = link.read(frame.bytes, parse, parse_ip);
    let end = parsed.ok()?.at.end as usize;
    let (first, numbers) = frame.bytes.split_at_checked(end)?;
    let (numbers, rest) = numbers.as_chunks();
    if !rest.is_empty() || numbers.len() > MOST_PACKED_NUMBERS {
        return None;
    }
    let first = Frame { bytes: first, gso: None, ..frame };
    let pattern = Pattern::read(first, link).ok()?;
    give(first);
    let mut id_step = 0_u16;
    for bytes in numbers {
        id_step = id_step.wrapping_add(1);
        let mut slot = pattern.slot();
        pattern.change_slot(&mut slot, &AckNumbers::from_packed(bytes), id_step);
        give(slot.frame(pattern.like()));
    }
    Some(1 + numbers.len())
}
