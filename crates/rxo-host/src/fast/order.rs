//! The flows of a batch. For each flow, this module records if a packet took the slow path, and the run in
//! which ACKs are gathered.
//!
//! Check 7 of `docs/fast-path.md`: an ACK must not overtake an earlier segment of its flow. A frame that takes
//! the slow path blocks the slot of its flow, and later ACKs in a blocked slot take the slow path too. Flows
//! can share a slot, so a frame of one flow may block another flow; this costs time, but never changes the
//! order. A frame whose flow cannot be read at fixed offsets blocks all slots.
//!
//! The slots are not cleared between batches: a slot is valid only if it has the number of the current batch.

use rxo_frame::{Frame, LinkKind};
use rxo_wire::{ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ethertype};

use crate::link::ETHERTYPE_ARP;

/// A hash table without collision handling: all flows of a batch with equal hashes share a slot.
#[derive(Debug)]
pub(super) struct Flows {
    spots: Box<[Spot; SPOTS]>,
    batch: u32,
    is_all_blocked: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Spot {
    batch: u32,
    /// The number of the run that gathers the ACKs of the slot's last flow, or [`BLOCKED`].
    run: u32,
    /// The index of the connection whose ACK was last gathered in this slot, in any batch. That connection
    /// may have been removed.
    place: u32,
}

/// The state of a slot in this batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    Nothing,
    /// A frame of one of the slot's flows has taken the slow path.
    Blocked,
    /// ACKs of one of the slot's flows are gathered in the run with this number.
    Run(u32),
}

impl Flows {
    pub(super) fn new() -> Self {
        Self { spots: Box::new([Spot::default(); SPOTS]), batch: 0, is_all_blocked: false }
    }

    /// Begins a batch, in which all slots are free at first.
    pub(super) fn begin(&mut self) {
        self.is_all_blocked = false;
        self.batch = self.batch.wrapping_add(1);
        if self.batch == 0 {
            // The number wrapped: otherwise a slot of 2^32 batches ago would look current.
            self.spots.fill(Spot::default());
            self.batch = 1;
        }
    }

    /// Returns the state of the slot `spot`.
    #[inline]
    pub(super) fn known(&self, spot: usize) -> SlotState {
        let Spot { batch, run, .. } = self.spots[spot % SPOTS];
        match run {
            _ if self.is_all_blocked => SlotState::Blocked,
            _ if batch != self.batch => SlotState::Nothing,
            BLOCKED => SlotState::Blocked,
            run => SlotState::Run(run),
        }
    }

    /// Assigns the slot `spot` to `run`, which gathers ACKs of the connection at index `place`.
    #[inline]
    pub(super) fn set(&mut self, spot: usize, run: u32, place: u32) {
        self.spots[spot % SPOTS] = Spot { batch: self.batch, run, place };
    }

    /// Returns the index of the connection whose ACK was last gathered at `spot`. The next ACK at `spot`
    /// usually belongs to this connection, which the caller must check.
    #[inline]
    pub(super) fn last_place(&self, spot: usize) -> u32 {
        self.spots[spot % SPOTS].place
    }

    /// Blocks the slot of `frame`, which takes the slow path. Blocks all slots if the flow of `frame` cannot be
    /// determined.
    #[inline]
    pub(super) fn pass(&mut self, link: LinkKind, frame: &Frame<&[u8]>) {
        match read_owner(link, frame.bytes) {
            FlowSlot::Flow(spot) => {
                let Spot { batch, run, .. } = &mut self.spots[spot % SPOTS];
                (*batch, *run) = (self.batch, BLOCKED);
            }
            FlowSlot::NotTcp => {}
            FlowSlot::Unknown => self.is_all_blocked = true,
        }
    }
}

/// The slot of a frame's TCP flow; `NotTcp` if the frame is not TCP, `Unknown` if the flow cannot be read at
/// fixed offsets.
enum FlowSlot {
    Flow(usize),
    NotTcp,
    Unknown,
}

#[inline]
fn read_owner(link: LinkKind, bytes: &[u8]) -> FlowSlot {
    let packet = match link {
        LinkKind::RawIp => bytes,
        LinkKind::Ethernet => match ethertype(bytes) {
            Some(ETHERTYPE_IPV4 | ETHERTYPE_IPV6) => {
                &bytes[ETHERNET_HEADER_BYTES.min(bytes.len())..]
            }
            Some(ETHERTYPE_ARP) => return FlowSlot::NotTcp,
            _ => return FlowSlot::Unknown,
        },
    };
    match packet.first() {
        Some(0x45) => read_owner_v4(packet),
        Some(first) if first >> 4 == 6 => read_owner_v6(packet),
        _ => FlowSlot::Unknown,
    }
}

#[inline]
fn read_owner_v4(packet: &[u8]) -> FlowSlot {
    let Some(headers) = packet.first_chunk::<24>() else { return FlowSlot::Unknown };
    let is_fragment = u16::from_be_bytes([headers[6], headers[7]]) & 0x3fff != 0;
    match headers[9] {
        TCP if !is_fragment => FlowSlot::Flow(spot_v4(headers)),
        UDP if !is_fragment => FlowSlot::NotTcp,
        _ => FlowSlot::Unknown,
    }
}

#[inline]
fn read_owner_v6(packet: &[u8]) -> FlowSlot {
    match packet.first_chunk::<44>() {
        Some(headers) if headers[6] == TCP => FlowSlot::Flow(spot_v6(headers)),
        Some(headers) if headers[6] == UDP => FlowSlot::NotTcp,
        _ => FlowSlot::Unknown,
    }
}

/// Returns the slot of the flow of a plain packet: equal for all packets of a flow. `None` if the packet is
/// too short.
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

/// Returns the slot of a flow, a hash of its addresses and ports. The hash is not keyed, because an attacker
/// who chooses a slot can only force its ACKs onto the slow path.
#[inline]
const fn mix(addresses: u32, ports: u32) -> usize {
    let both = (addresses as u64) << 32 | ports as u64;
    (both.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
}

const SPOTS: usize = 1_024;
const BLOCKED: u32 = u32::MAX;
const TCP: u8 = rxo_wire::PROTOCOL_TCP;
const UDP: u8 = rxo_wire::PROTOCOL_UDP;
