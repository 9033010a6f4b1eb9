//! The flows of a batch. Of each: whether a packet has taken the ordinary way, and where its ACKs are gathered.
//!
//! Check 7: an ACK must not overtake an earlier segment of its flow. A frame that takes the ordinary way blocks
//! its spot, and later ACKs of that spot take the ordinary way too. Flows share spots, so a flow may be blocked for
//! another's sake; that costs time, never order. A frame whose flow is not at a fixed place blocks all.
//!
//! Nothing is cleared between batches: a spot is valid if it has the number of the batch.

use rxo_frame::{Frame, LinkKind};
use rxo_wire::{ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ethertype};

use crate::link::ETHERTYPE_ARP;

/// The spots of a batch.
#[derive(Debug)]
pub(super) struct Flows {
    spots: Box<[Spot; SPOTS]>,
    batch: u32,
    is_all_blocked: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Spot {
    batch: u32,
    /// The run in which the ACKs of the last flow at this spot are gathered, or [`BLOCKED`].
    run: u32,
    /// The place of the connection whose ACK was gathered here last, in whatever batch. It may be there no more.
    place: u32,
}

/// What is known of the flows at a spot in this batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Nothing,
    /// Something of one of them has taken the ordinary way.
    Blocked,
    /// ACKs of one of them are gathered in this run.
    Run(u32),
}

impl Flows {
    pub(super) fn new() -> Self {
        Self { spots: Box::new([Spot::default(); SPOTS]), batch: 0, is_all_blocked: false }
    }

    /// Begins a batch.
    pub(super) fn begin(&mut self) {
        self.is_all_blocked = false;
        self.batch = self.batch.wrapping_add(1);
        if self.batch == 0 {
            // Otherwise a spot of four billion batches ago would look new.
            self.spots.fill(Spot::default());
            self.batch = 1;
        }
    }

    /// What is known of the flows at `spot`.
    #[inline]
    pub(super) fn known(&self, spot: usize) -> Known {
        let Spot { batch, run, .. } = self.spots[spot % SPOTS];
        match run {
            _ if self.is_all_blocked => Known::Blocked,
            _ if batch != self.batch => Known::Nothing,
            BLOCKED => Known::Blocked,
            run => Known::Run(run),
        }
    }

    /// Gathers the next ACKs at `spot` in `run`, which is of the connection at `place`.
    #[inline]
    pub(super) fn set(&mut self, spot: usize, run: u32, place: u32) {
        self.spots[spot % SPOTS] = Spot { batch: self.batch, run, place };
    }

    /// The place of the connection whose ACK was gathered last at `spot`, if it is still there: most often that of the next.
    #[inline]
    pub(super) fn last_place(&self, spot: usize) -> u32 {
        self.spots[spot % SPOTS].place
    }

    /// Takes note that `frame` takes the ordinary way.
    #[inline]
    pub(super) fn pass(&mut self, link: LinkKind, frame: &Frame<&[u8]>) {
        match whose(link, frame.bytes) {
            Whose::Flow(spot) => {
                let Spot { batch, run, .. } = &mut self.spots[spot % SPOTS];
                (*batch, *run) = (self.batch, BLOCKED);
            }
            Whose::Nobody => {}
            Whose::Unknown => self.is_all_blocked = true,
        }
    }
}

/// Which flow of TCP a frame may be of.
enum Whose {
    Flow(usize),
    Nobody,
    Unknown,
}

#[inline]
fn whose(link: LinkKind, bytes: &[u8]) -> Whose {
    let packet = match link {
        LinkKind::RawIp => bytes,
        LinkKind::Ethernet => match ethertype(bytes) {
            Some(ETHERTYPE_IPV4 | ETHERTYPE_IPV6) => {
                &bytes[ETHERNET_HEADER_BYTES.min(bytes.len())..]
            }
            Some(ETHERTYPE_ARP) => return Whose::Nobody,
            _ => return Whose::Unknown,
        },
    };
    match packet.first() {
        Some(0x45) => whose_v4(packet),
        Some(first) if first >> 4 == 6 => whose_v6(packet),
        _ => Whose::Unknown,
    }
}

#[inline]
fn whose_v4(packet: &[u8]) -> Whose {
    let Some(headers) = packet.first_chunk::<24>() else { return Whose::Unknown };
    let is_fragment = u16::from_be_bytes([headers[6], headers[7]]) & 0x3fff != 0;
    match headers[9] {
        TCP if !is_fragment => Whose::Flow(spot_v4(headers)),
        UDP if !is_fragment => Whose::Nobody,
        _ => Whose::Unknown,
    }
}

#[inline]
fn whose_v6(packet: &[u8]) -> Whose {
    match packet.first_chunk::<44>() {
        Some(headers) if headers[6] == TCP => Whose::Flow(spot_v6(headers)),
        Some(headers) if headers[6] == UDP => Whose::Nobody,
        _ => Whose::Unknown,
    }
}

/// The spot of the flow of a plain packet: the one that every other packet of the flow has.
#[inline(always)]
pub(super) fn spot_of_plain(packet: &[u8], is_v4: bool) -> Option<usize> {
    Some(if is_v4 { spot_v4(packet.first_chunk()?) } else { spot_v6(packet.first_chunk()?) })
}

#[inline]
fn spot_v4(headers: &[u8; 24]) -> usize {
    mix(word(headers, 12) ^ word(headers, 16).rotate_left(16), word(headers, 20))
}

#[inline]
fn spot_v6(headers: &[u8; 44]) -> usize {
    let addresses =
        (8..40).step_by(4).fold(0, |sum: u32, at| sum.rotate_left(5) ^ word(headers, at));
    mix(addresses, word(headers, 40))
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Spreads flows over spots. Whoever aims at a spot only blocks it.
#[inline]
const fn mix(addresses: u32, ports: u32) -> usize {
    let both = (addresses as u64) << 32 | ports as u64;
    (both.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
}

const SPOTS: usize = 1_024;
const BLOCKED: u32 = u32::MAX;
const TCP: u8 = rxo_wire::PROTOCOL_TCP;
const UDP: u8 = rxo_wire::PROTOCOL_UDP;
