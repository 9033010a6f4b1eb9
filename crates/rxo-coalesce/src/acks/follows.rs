//! Whether a plain pure ACK may join those held, in one masked compare of both headers.
//!
//! Gives the answer of [`super::ack_verdict`] for the form that nearly every ACK has. Two pure ACKs that may be
//! aggregated differ only in IP ID and checksum, ACK number, window, TCP checksum and timestamp values. All other
//! bytes, addresses and ports included, are equal. So the compare also shows that both are of one flow and that
//! the next is as plain as the last, and nothing is parsed. Neither has IPv4 options, because the last is held.
//! The answer is `None` if only the full rules can decide, as for a window update.

use rxo_frame::Frame;
use rxo_wire::layout::{self, Layout, differing_link, number};
use rxo_wire::{IpVersion, PROTOCOL_TCP};

use super::AckPoint;
use crate::shape::Shape;

/// Data offset without options, and with twelve bytes of them.
const OFFSET_BARE: u8 = 0x50;
const OFFSET_TIMESTAMP: u8 = 0x80;
/// The longest TCP header that is plain.
const MOST_TCP_BYTES: usize = 32;

/// Pure ACKs that follow one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Following {
    /// How many, at least one.
    pub(crate) count: u32,
    /// What the last of them says.
    pub(crate) said: AckPoint,
}

/// How many of `frames`, from the first on, may follow `last`, as [`follows`] says of each; `None` if the first may
/// not. `is_intact` sees each frame and those after it.
#[inline(always)]
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

/// Does what [`follow`] does with `HEADERS` bytes of headers, `IP` of them the IP header's.
#[inline(always)]
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
        && let Some((said, ts_value)) = before.next(new)
        && is_alike(last, next, network)
        && is_intact(next, rest)
    {
        (before.said, before.ts_value, frames) = (said, ts_value, rest);
    }
    let count = (all - frames.len()) as u32;
    (count > 0).then_some(Following { count, said: before.said })
}

/// The contents of `next` if it may follow `last`, a pure ACK of IP version `S` that is held. The IP headers of
/// both begin at `network`.
#[inline(always)]
pub(crate) fn follows<S: Shape, B: AsRef<[u8]>>(
    last: &Frame<B>,
    next: &Frame<B>,
    network: usize,
) -> Option<AckPoint> {
    let (old, new) = (last.bytes().get(network..)?, next.bytes().get(network..)?);
    let said = match (S::VERSION, *old.get(S::IP_BYTES + 12)?) {
        (IpVersion::V4, OFFSET_TIMESTAMP) => said_after::<20, 52>(old, new)?,
        (IpVersion::V4, OFFSET_BARE) => said_after::<20, 40>(old, new)?,
        (IpVersion::V6, OFFSET_TIMESTAMP) => said_after::<40, 72>(old, new)?,
        (IpVersion::V6, OFFSET_BARE) => said_after::<40, 60>(old, new)?,
        _ => return None,
    };
    is_alike(last, next, network).then_some(said)
}

/// What the ACK in the packet `new` says, if it may follow the one in `old`.
#[inline(always)]
fn said_after<const IP: usize, const HEADERS: usize>(old: &[u8], new: &[u8]) -> Option<AckPoint> {
    let before = Before::<IP, HEADERS>::of(old.first_chunk()?);
    before.next(new.first_chunk()?).map(|(said, _)| said)
}

/// Whether the frames of two pure ACKs are alike but for their packets, which begin at `network`.
#[inline(always)]
fn is_alike<B: AsRef<[u8]>>(last: &Frame<B>, next: &Frame<B>, network: usize) -> bool {
    let link = differing_link(last.bytes(), next.bytes(), network);
    // A partial checksum may be elsewhere; that of the last is known to be its own.
    let is_own = !next.checksum.is_partial() || next.checksum == last.checksum;
    link == 0 && last.vlan == next.vlan && next.gso.is_none() && is_own
}

/// What is known of the ACK before. `IP` bytes of its headers are the IP header's.
struct Before<'a, const IP: usize, const HEADERS: usize> {
    /// The headers of the first: those of all others are like them, but for what is below.
    like: &'a [u8; HEADERS],
    /// [`changing`] of the IPv4 header: the same for all.
    ip_sum: u32,
    /// Of the last.
    said: AckPoint,
    ts_value: u32,
}

impl<'a, const IP: usize, const HEADERS: usize> Before<'a, IP, HEADERS> {
    const VERSION: IpVersion = if IP == 20 { IpVersion::V4 } else { IpVersion::V6 };
    const ROW: Layout = layout::ack(Self::VERSION, HEADERS - IP);

    #[inline(always)]
    fn of(like: &'a [u8; HEADERS]) -> Self {
        let ip_sum = if IP == 20 { changing(like) } else { 0 };
        let (said, ts_value) = (AckPoint::of::<IP, HEADERS>(like), timestamp::<IP, _>(like) as u32);
        Self { like, ip_sum, said, ts_value }
    }

    /// What the ACK with the headers `new` says, and its TSval, if it may follow.
    #[inline(always)]
    fn next(&self, new: &[u8; HEADERS]) -> Option<(AckPoint, u32)> {
        let said = AckPoint::of::<IP, HEADERS>(new);
        let may_follow = self.differing(new) == 0 && said.advances(self.said);
        may_follow.then_some((said, timestamp::<IP, _>(new) as u32))
    }

    /// Zero if nothing differs but what the row leaves out, the IPv4 checksum is right if the old one's is, and the
    /// timestamp stands where nearly every stack puts it and TSval does not go back.
    #[inline(always)]
    fn differing(&self, new: &[u8; HEADERS]) -> u64 {
        let fixed = Self::ROW.differing(self.like, new)
            | match Self::VERSION {
                IpVersion::V4 => u64::from(self.ip_sum ^ changing(new)),
                // Behind extension headers there would be other fields at these offsets.
                IpVersion::V6 => u64::from(new[6] ^ PROTOCOL_TCP),
            };
        if HEADERS == IP + 20 {
            return fixed;
        }
        // Arranged otherwise, the value would stand elsewhere, and padding where the echo is.
        let stamp = timestamp::<IP, _>(new);
        let went_back = (stamp as u32).wrapping_sub(self.ts_value) >> 31;
        fixed | (stamp >> 32 ^ ALIGNED_TIMESTAMP) | u64::from(went_back)
    }
}

/// Two no-operations, and kind and length of the timestamp.
const ALIGNED_TIMESTAMP: u64 = 0x0101_080a;

/// The start of a timestamp in its usual place, TSval last. 0 if there is no room for one.
#[inline(always)]
fn timestamp<const IP: usize, const HEADERS: usize>(headers: &[u8; HEADERS]) -> u64 {
    number(headers, IP + 20)
}

/// The one's complement sum of an IPv4 header's ID and checksum, which stays the same while only the
/// ID changes.
#[inline(always)]
fn changing<const HEADERS: usize>(ip: &[u8; HEADERS]) -> u32 {
    let half = |at| u32::from(u16::from_ne_bytes([ip[at], ip[at + 1]]));
    let sum = half(4) + half(10);
    (sum & 0xffff) + (sum >> 16)
}
