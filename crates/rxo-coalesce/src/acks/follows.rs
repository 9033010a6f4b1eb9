//! A fast check that a pure ACK may join the ACKs that are held, by one masked compare of both headers.
//!
//! For ordinary ACKs, as nearly all ACKs are, the result equals that of [`super::ack_verdict`]. Two pure ACKs
//! that may be aggregated differ only in IP ID and checksum, ACK number, window, TCP checksum and timestamp
//! values. All other bytes, addresses and ports included, are equal, so an equal compare also shows that both
//! ACKs belong to one flow and that the next ACK is ordinary if the last one is. No header is parsed. IPv4
//! options are impossible, because the last ACK is held. If only the full rules can decide, as for a window
//! update, the result is `None`.

use rxo_frame::Frame;
use rxo_wire::layout::{self, Layout, differing_link, number};
use rxo_wire::{IpVersion, PROTOCOL_TCP};

use crate::ack_point::AckPoint;
use crate::shape::Shape;

/// The values of the byte after the ACK number (the data offset): without options, and with twelve bytes of
/// options.
const OFFSET_BARE: u8 = 0x50;
const OFFSET_TIMESTAMP: u8 = 0x80;
/// The longest TCP header that this check handles, in bytes.
const MOST_TCP_BYTES: usize = 32;

/// A run of pure ACKs that may be appended to the ACKs that a flow holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Following {
    /// The number of ACKs in the run, at least one.
    pub(crate) count: u32,
    /// ACK number and window of the last ACK in the run.
    pub(crate) point: AckPoint,
}

/// Counts the leading ACKs of `frames` that may be appended to `last`, by the rules of [`follows`]. Returns
/// `None` if the first frame may not be appended. `is_intact` verifies the checksum of a frame; its second
/// argument is the frames behind that frame.
#[inline]
pub(crate) fn follow<S: Shape, B: AsRef<[u8]>>(
    last: &Frame<B>,
    frames: &[Frame<B>],
    network: usize,
    is_intact: impl Fn(&Frame<B>, &[Frame<B>]) -> bool,
) -> Option<Following> {
    let old = last.bytes().get(network..)?;
    match (S::VERSION, *old.get(S::IP_BYTES + 12)?) {
        (IpVersion::V4, OFFSET_TIMESTAMP) => run::<20, 52, B>(last, frames, network, is_intact),
        (IpVersion::V4, OFFSET_BARE) => run::<20, 40, B>(last, frames, network, is_intact),
        (IpVersion::V6, OFFSET_TIMESTAMP) => run::<40, 72, B>(last, frames, network, is_intact),
        (IpVersion::V6, OFFSET_BARE) => run::<40, 60, B>(last, frames, network, is_intact),
        _ => None,
    }
}

/// Implements [`follow`] for packets with `HEADERS` bytes of headers; the IP header has `IP` bytes.
#[inline]
fn run<const IP: usize, const HEADERS: usize, B: AsRef<[u8]>>(
    last: &Frame<B>,
    mut frames: &[Frame<B>],
    network: usize,
    is_intact: impl Fn(&Frame<B>, &[Frame<B>]) -> bool,
) -> Option<Following> {
    let all = frames.len();
    let mut before = Before::<IP, HEADERS>::of(last.bytes().get(network..)?.first_chunk()?);
    while let [next, rest @ ..] = frames
        && let Some(packet) = next.bytes().get(network..)
        && packet.len() <= IP + MOST_TCP_BYTES
        && let Some(new) = packet.first_chunk()
        && let Some((point, ts_value)) = before.next(new)
        && is_compatible(last, next, network)
        && is_intact(next, rest)
    {
        (before.point, before.ts_value, frames) = (point, ts_value, rest);
    }
    let count = (all - frames.len()) as u32;
    (count > 0).then_some(Following { count, point: before.point })
}

/// Returns ACK number and window of `next` if it may follow `last`, a held pure ACK of IP version `S`;
/// otherwise `None`. The IP headers of both begin at `network`.
#[inline(always)]
pub(crate) fn follows<S: Shape, B: AsRef<[u8]>>(
    last: &Frame<B>,
    next: &Frame<B>,
    network: usize,
) -> Option<AckPoint> {
    let (old, new) = (last.bytes().get(network..)?, next.bytes().get(network..)?);
    let point = match (S::VERSION, *old.get(S::IP_BYTES + 12)?) {
        (IpVersion::V4, OFFSET_TIMESTAMP) => read_following::<20, 52>(old, new)?,
        (IpVersion::V4, OFFSET_BARE) => read_following::<20, 40>(old, new)?,
        (IpVersion::V6, OFFSET_TIMESTAMP) => read_following::<40, 72>(old, new)?,
        (IpVersion::V6, OFFSET_BARE) => read_following::<40, 60>(old, new)?,
        _ => return None,
    };
    is_compatible(last, next, network).then_some(point)
}

/// Returns the ACK number and the window of the packet `new` if it may follow the ACK in `old`; otherwise
/// `None`.
#[inline(always)]
fn read_following<const IP: usize, const HEADERS: usize>(
    old: &[u8],
    new: &[u8],
) -> Option<AckPoint> {
    let before = Before::<IP, HEADERS>::of(old.first_chunk()?);
    before.next(new.first_chunk()?).map(|(point, _)| point)
}

/// Returns `true` if link header, VLAN tag and offload metadata of two frames allow them to be aggregated.
/// Their packets begin at `network`.
#[inline(always)]
fn is_compatible<B: AsRef<[u8]>>(last: &Frame<B>, next: &Frame<B>, network: usize) -> bool {
    let link = differing_link(last.bytes(), next.bytes(), network);
    // A partial checksum may point at another field; the one of `last` is known to be the TCP checksum.
    let is_own = !next.checksum.is_partial() || next.checksum == last.checksum;
    link == 0 && last.vlan == next.vlan && next.gso.is_none() && is_own
}

/// The state of the preceding ACK, against which the next is compared. `IP` is the length of its IP header.
struct Before<'a, const IP: usize, const HEADERS: usize> {
    /// The headers of the first ACK of the run. All later ACKs equal it, except for IP ID, checksums, ACK
    /// number, window and timestamp.
    like: &'a [u8; HEADERS],
    /// The result of [`changing`] for the IPv4 header, the same for all ACKs of the run; 0 for IPv6.
    ip_sum: u32,
    /// ACK number and window of the preceding ACK.
    point: AckPoint,
    /// TSval of the preceding ACK.
    ts_value: u32,
}

impl<'a, const IP: usize, const HEADERS: usize> Before<'a, IP, HEADERS> {
    const VERSION: IpVersion = if IP == 20 { IpVersion::V4 } else { IpVersion::V6 };
    const ROW: Layout = layout::ack(Self::VERSION, HEADERS - IP);

    #[inline]
    fn of(like: &'a [u8; HEADERS]) -> Self {
        let ip_sum = if IP == 20 { changing(like) } else { 0 };
        let (point, ts_value) =
            (AckPoint::of::<IP, HEADERS>(like), timestamp::<IP, _>(like) as u32);
        Self { like, ip_sum, point, ts_value }
    }

    /// Returns ACK number, window and TSval of the ACK with the headers `new` if it may follow.
    #[inline(always)]
    fn next(&self, new: &[u8; HEADERS]) -> Option<(AckPoint, u32)> {
        let point = AckPoint::of::<IP, HEADERS>(new);
        let may_follow = self.differing(new) == 0 && point.advances(self.point);
        may_follow.then_some((point, timestamp::<IP, _>(new) as u32))
    }

    /// Returns zero if only masked fields differ, the IPv4 checksum is right whenever the old one is, the
    /// timestamp is at its usual offset, and TSval does not decrease.
    #[inline(always)]
    fn differing(&self, new: &[u8; HEADERS]) -> u64 {
        let fixed = Self::ROW.differing(self.like, new)
            | match Self::VERSION {
                IpVersion::V4 => u64::from(self.ip_sum ^ changing(new)),
                // With extension headers, other fields would be at these offsets.
                IpVersion::V6 => u64::from(new[6] ^ PROTOCOL_TCP),
            };
        if HEADERS == IP + 20 {
            return fixed;
        }
        // With another arrangement of options, these offsets would hold padding or the echo instead of TSval.
        let stamp = timestamp::<IP, _>(new);
        // The top bit of the difference is set if TSval decreased, modulo 2³².
        let went_back = (stamp as u32).wrapping_sub(self.ts_value) >> 31;
        fixed | (stamp >> 32 ^ ALIGNED_TIMESTAMP) | u64::from(went_back)
    }
}

/// Two no-operation options, then kind and length of the timestamp option (RFC 7323 appendix A).
const ALIGNED_TIMESTAMP: u64 = 0x0101_080a;

/// Reads the first eight option bytes: kind and length of the timestamp, then TSval. 0 if there are no
/// options.
#[inline]
fn timestamp<const IP: usize, const HEADERS: usize>(headers: &[u8; HEADERS]) -> u64 {
    number(headers, IP + 20)
}

/// Returns the one's complement sum of an IPv4 header's ID and checksum, which stays the same while only the
/// ID changes.
#[inline]
fn changing<const HEADERS: usize>(ip: &[u8; HEADERS]) -> u32 {
    let half = |at| u32::from(u16::from_ne_bytes([ip[at], ip[at + 1]]));
    let sum = half(4) + half(10);
    (sum & 0xffff) + (sum >> 16)
}
