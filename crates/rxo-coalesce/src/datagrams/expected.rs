//! The expected next datagram, compared in one go, as [`crate::expected`] compares segments.
//!
//! A datagram that only continues a run differs from the last one in three fields: IP ID, IP checksum and UDP
//! checksum. The first two follow from the last one's; the third must not be zero, and is verified apart.

use rxo_frame::{ChecksumStatus, Frame, VlanTag};
use rxo_wire::{FlowKey, IpVersion, PROTOCOL_UDP};

use crate::expected::{Shape, V4, V6, differing_link, id_step, number, word};
use crate::held::Held;

/// How the headers of one IP version and UDP are read as words.
pub(crate) trait DatagramShape: Shape {
    /// IP and UDP header.
    type Start;

    /// The flow of a packet if it is UDP without IP options or extension headers. `None` if not, or if the packet
    /// is cut short.
    fn datagram_key(packet: &[u8]) -> Option<FlowKey>;

    /// Whether the packet is a fragment, or has the reserved bit.
    fn is_odd(packet: &[u8]) -> bool;

    /// The headers that `packet` begins with.
    fn start(packet: &[u8]) -> Option<&Self::Start>;

    /// What counts.
    fn counted(start: &Self::Start) -> Self::Counting;

    /// Zero if everything is alike but what counts and the UDP checksum.
    fn unlike(last: &Self::Start, next: &Self::Start) -> u64;

    /// The last eight bytes: ports, length and checksum.
    fn tail(start: &Self::Start) -> u64;
}

const CHECKSUM: u64 = u64::from_ne_bytes([0, 0, 0, 0, 0, 0, 255, 255]);

impl DatagramShape for V4 {
    type Start = [u8; 28];

    #[inline(always)]
    fn datagram_key(packet: &[u8]) -> Option<FlowKey> {
        let start: &[u8; 28] = packet.first_chunk()?;
        if start[0] != 0x45 || start[9] != PROTOCOL_UDP {
            return None;
        }
        let word = |at| (number(start, at) >> 32) as u32;
        Some(FlowKey::v4(word(12), word(16), word(20), 0))
    }

    #[inline(always)]
    fn is_odd(packet: &[u8]) -> bool {
        !matches!(packet, [_, _, _, _, _, _, 0x00 | 0x40, 0, ..])
    }

    #[inline(always)]
    fn start(packet: &[u8]) -> Option<&[u8; 28]> {
        packet.first_chunk()
    }

    #[inline(always)]
    fn counted(start: &[u8; 28]) -> u64 {
        number(start, 4)
    }

    #[inline(always)]
    fn unlike(last: &[u8; 28], next: &[u8; 28]) -> u64 {
        let first = |of: &[u8; 28]| u32::from_ne_bytes([of[0], of[1], of[2], of[3]]);
        let ip = u64::from(first(last) ^ first(next)) | word(last, 12) ^ word(next, 12);
        ip | (word(last, 20) ^ word(next, 20)) & !CHECKSUM
    }

    #[inline(always)]
    fn tail(start: &[u8; 28]) -> u64 {
        word(start, 20)
    }
}

impl DatagramShape for V6 {
    type Start = [u8; 48];

    #[inline(always)]
    fn datagram_key(packet: &[u8]) -> Option<FlowKey> {
        let start: &[u8; 48] = packet.first_chunk()?;
        if start[0] >> 4 != 6 || start[6] != PROTOCOL_UDP {
            return None;
        }
        let ports = (number(start, 40) >> 32) as u32;
        Some(FlowKey::v6(start.get(8..)?.first_chunk()?, ports, 0))
    }

    #[inline(always)]
    fn is_odd(_packet: &[u8]) -> bool {
        false
    }

    #[inline(always)]
    fn start(packet: &[u8]) -> Option<&[u8; 48]> {
        packet.first_chunk()
    }

    #[inline(always)]
    fn counted(_start: &[u8; 48]) {}

    #[inline(always)]
    fn unlike(last: &[u8; 48], next: &[u8; 48]) -> u64 {
        let differing = |at| word(last, at) ^ word(next, at);
        let ip = differing(0) | differing(8) | differing(16) | differing(24) | differing(32);
        ip | differing(40) & !CHECKSUM
    }

    #[inline(always)]
    fn tail(start: &[u8; 48]) -> u64 {
        word(start, 40)
    }
}

/// What the next frame of a run of datagrams must be.
pub(crate) struct ExpectedDatagram<'a, S: DatagramShape> {
    last: &'a [u8],
    start: &'a S::Start,
    counting: S::Counting,
    network: usize,
    checksum: ChecksumStatus,
    vlan: Option<VlanTag>,
    /// How much the IPv4 ID counts.
    pub(crate) step: u16,
    /// How many more datagrams can be told from this expectation.
    pub(crate) steps: u32,
}

impl<'a, S: DatagramShape> ExpectedDatagram<'a, S> {
    /// What follows `last`, the last datagram of `held`, whose IP header begins at `network`. Where it is still
    /// open whether the IPv4 ID counts, `next` decides. `None` if only the rules can tell.
    #[inline(always)]
    pub(crate) fn after<B: AsRef<[u8]>>(
        held: &Held,
        last: &'a Frame<B>,
        next: &[u8],
        network: usize,
    ) -> Option<Self> {
        // With extension headers what follows is not what it is taken for.
        let (at, transport) = (held.at, network + S::IP_BYTES);
        if !at.is_datagram() || usize::from(at.transport()) != transport {
            return None;
        }
        let bytes = last.bytes();
        let packet = bytes.get(network..)?;
        let start = S::start(packet)?;
        let step = match S::VERSION {
            IpVersion::V4 => {
                let next = next.get(network..)?.first_chunk()?;
                id_step(
                    held.id_pattern,
                    number(packet.first_chunk::<8>()?, 0),
                    number::<8>(next, 0),
                )?
            }
            IpVersion::V6 => 0,
        };
        let mut counting = S::counted(start);
        let steps = S::steps_to_wrap(counting, step);
        S::advance(&mut counting, step);
        let (checksum, vlan) = (last.checksum, last.vlan);
        Some(Self { last: bytes, start, counting, network, checksum, vlan, step, steps })
    }

    /// Whether `next` is the expected datagram; whether its checksum is right is not looked at.
    #[inline(always)]
    pub(crate) fn is_met_by<B: AsRef<[u8]>>(&self, next: &Frame<B>) -> bool {
        let bytes = next.bytes();
        if bytes.len() != self.last.len() {
            return false;
        }
        let Some(start) = bytes.get(self.network..).and_then(S::start) else { return false };
        let is_alike = next.checksum == self.checksum
            && next.gso.is_none()
            && next.vlan == self.vlan
            && S::tail(start) & CHECKSUM != 0;
        is_alike
            && S::miscounting(self.counting, S::counted(start))
                | S::unlike(self.start, start)
                | differing_link(self.last, bytes, self.network)
                == 0
    }

    /// Moves on by one datagram.
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        S::advance(&mut self.counting, self.step);
    }
}
