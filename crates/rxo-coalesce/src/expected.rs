//! The expected segment: predicts the header of the next segment and compares it in one step.
//!
//! A segment that only continues the last one differs from it in four fields: IP ID, IP checksum, SEQ and TCP
//! checksum. The first three follow from the last segment; the fourth is verified separately. So the whole next
//! header is predictable. A layout of [`rxo_wire::layout`] compares a frame with it. SEQ is compared first,
//! because it differs for most frames of other flows. The constant fields are read from the last segment itself,
//! so no copy of them is needed. If the compare fails, the full rules decide.

use core::mem::discriminant;

use rxo_frame::{ChecksumStatus, Frame, VlanTag};
use rxo_wire::IpVersion;
use rxo_wire::layout::{self, number};

use crate::held::{Held, IdPattern};
use crate::shape::{Shape, Start};

const DONT_FRAGMENT: u64 = 0x4000;

/// The header that the next frame of a flow must have to continue the last one.
pub(crate) struct Expected<'a, S: Shape> {
    /// The frame of the last segment; `headers` are its headers.
    last: &'a [u8],
    headers: &'a S::Headers,
    counting: u64,
    seq: u32,
    /// Masks of the bytes that must be equal, starting at the TCP checksum.
    tail: [u64; 2],
    network: usize,
    payload_bytes: u32,
    checksum: ChecksumStatus,
    vlan: Option<VlanTag>,
    /// 1 if the IPv4 ID increments; 0 if it is constant, and for IPv6.
    step: u16,
    /// The number of further segments that this prediction covers, until the IPv4 ID wraps around.
    steps: u32,
}

impl<'a, S: Shape> Expected<'a, S> {
    /// Predicts the segment after `last`, the last one of `held`, whose IP header begins at `network`. If `held`
    /// is a single segment, the ID of `next` decides whether the IPv4 ID increments. `None` if only the full
    /// rules can decide. `SHORT` and `room` are explained at [`headers_in`].
    #[inline(always)]
    pub(crate) fn after<B: AsRef<[u8]>, const SHORT: bool>(
        held: &Held,
        last: &'a Frame<B>,
        next: &[u8],
        network: usize,
        room: &'a mut S::Headers,
    ) -> Option<Self> {
        // With extension headers the TCP header does not follow the fixed IP header.
        if usize::from(held.at.transport()) != network + S::IP_BYTES {
            return None;
        }
        let bytes = last.bytes();
        let packet = bytes.get(network..)?;
        let headers = headers_in::<S, SHORT>(packet, room)?;
        let step = match S::VERSION {
            IpVersion::V4 => {
                let (last, next) =
                    (packet.first_chunk::<8>()?, next.get(network..)?.first_chunk::<8>()?);
                id_step(held.id_pattern, number(last, 0), number(next, 0))?
            }
            IpVersion::V6 => 0,
        };
        let counting = layout::counting(S::VERSION, headers.as_ref());
        let steps = layout::steps_to_wrap(counting, step);
        let tcp_bytes = usize::from(held.header_bytes - u16::from(held.at.transport()));
        Some(Self {
            last: bytes,
            headers,
            counting: layout::counted(counting, step),
            seq: held.next_seq.0,
            tail: layout::data_tail(tcp_bytes)?,
            network,
            payload_bytes: held.last_payload_bytes,
            checksum: last.checksum,
            vlan: last.vlan,
            step,
            steps,
        })
    }

    /// Returns the number of segments that may be compared before a new prediction must be made.
    #[inline]
    pub(crate) const fn steps(&self) -> u32 {
        self.steps
    }

    /// Returns the increment of the IPv4 ID per segment: 0 or 1.
    #[inline]
    pub(crate) const fn id_step(&self) -> u16 {
        self.step
    }

    /// Returns `true` if the last segment's frame has no VLAN tag and its checksum is not partial. True for
    /// nearly all frames.
    #[inline]
    pub(crate) const fn is_bare(&self) -> bool {
        self.vlan.is_none() && !self.checksum.is_partial()
    }

    /// Returns `true` if `next` is the expected segment, apart from its TCP checksum. `SHORT` is explained at
    /// [`headers_in`]. With `BARE`, [`Expected::is_bare`] must return `true`, and less metadata is compared: only
    /// the kind of the checksum status, and the absence of a VLAN tag.
    #[inline(always)]
    pub(crate) fn matches<B: AsRef<[u8]>, const SHORT: bool, const BARE: bool>(
        &self,
        next: &Frame<B>,
    ) -> bool {
        let bytes = next.bytes();
        if bytes.len() != self.last.len() {
            return false;
        }
        let mut room = S::Headers::ZEROS;
        let packet = bytes.get(self.network..);
        let headers = packet.and_then(|packet| headers_in::<S, SHORT>(packet, &mut room));
        let Some(headers) = headers else { return false };
        let (old, new) = (self.headers.as_ref(), headers.as_ref());
        let seq = new.get(S::IP_BYTES + 4..).and_then(<[u8]>::first_chunk);
        let tail = |number: usize| {
            let at = S::IP_BYTES + 16 + 8 * number;
            (layout::word(old, at) ^ layout::word(new, at)) & self.tail[number]
        };
        seq.is_some_and(|seq| u32::from_be_bytes(*seq) == self.seq)
            && next.gso.is_none()
            && self.has_metadata_of::<B, BARE>(next)
            && self.counting ^ layout::counting(S::VERSION, new)
                | S::DATA.differing(old, new)
                | tail(0)
                | tail(1)
                | layout::differing_link(self.last, bytes, self.network)
                == 0
    }

    #[inline(always)]
    fn has_metadata_of<B, const BARE: bool>(&self, next: &Frame<B>) -> bool {
        if BARE {
            // Only the status `Partial` has fields, and it is excluded here.
            let is_alike = discriminant(&next.checksum) == discriminant(&self.checksum);
            is_alike && next.vlan.is_none()
        } else {
            next.checksum == self.checksum && next.vlan == self.vlan
        }
    }

    /// Advances the prediction by one segment.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.seq = self.seq.wrapping_add(self.payload_bytes);
        self.counting = layout::counted(self.counting, self.step);
    }
}

/// Returns the increment of the IPv4 ID, 0 or 1, from `last` to `next`; `None` if the increment is neither.
/// `last` and `next` are the first eight bytes of two IPv4 headers.
#[inline(always)]
pub(crate) fn id_step(pattern: IdPattern, last: u64, next: u64) -> Option<u16> {
    let step = match pattern {
        IdPattern::Fixed => 0,
        IdPattern::Incrementing => 1,
        // The tier that parses whole headers knows whether the policy allows it.
        IdPattern::Mixed => return None,
        IdPattern::Undecided => ((next >> 16) as u16).wrapping_sub((last >> 16) as u16),
    };
    // Equal IDs without DF would identify fragments of one packet.
    (step == 1 || (step == 0 && last & DONT_FRAGMENT != 0)).then_some(step)
}

/// Returns the headers at the start of `packet`. With `SHORT` the packet may be shorter than the headers:
/// they are then copied to `room`, with zeros behind the end. Otherwise, returns `None` for a shorter packet.
#[inline]
pub(crate) fn headers_in<'a, S: Shape, const SHORT: bool>(
    packet: &'a [u8],
    room: &'a mut S::Headers,
) -> Option<&'a S::Headers> {
    if !SHORT {
        return S::Headers::of(packet);
    }
    let bytes = room.as_mut();
    let copied = bytes.len().min(packet.len());
    bytes.get_mut(..copied)?.copy_from_slice(packet.get(..copied)?);
    Some(room)
}
