//! The written list of differences in coalescing, and the effect of each on a flow.

use rxo_frame::ChecksumStatus;
use rxo_testkit::naive::{Reading, Segment, internet_checksum, pseudo_header_sum};
use rxo_vnet::VnetHeader;
use rxo_wire::FlowKey;

use crate::gro::{key_of, reading};
use crate::whole::{Whole, network_at};

/// A reason why kernel and rxo deliver a flow differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Difference {
    /// The kernel delivers frames that it cannot check or does not parse at once; rxo delivers them after the
    /// held frames of their flow.
    RefusedOvertakes,
    /// The kernel keeps frames of one connection in separate aggregates if their link headers, extension
    /// headers or flow labels differ, or one is UDP and one TCP; rxo keeps their order.
    HeldSideBySide,
    /// rxo delivers segments marked CE one by one, because the host counts packets; the kernel merges them.
    CeMarks,
    /// rxo ignores padding after a short packet; the kernel delivers a padded packet by itself.
    Padding,
    /// A kernel without 802.1Q coalesces no frames with VLAN tags; rxo does.
    Tags,
    /// rxo does not coalesce datagrams to ports of tunnels; the kernel asks its sockets whether they are
    /// tunnels.
    TunnelPort,
    /// rxo does not merge a frame whose checksum is partial with one whose checksum is complete; the kernel
    /// does.
    MixedChecksums,
    /// The kernel treats a partial checksum at a wrong offset, or over a field that is not the sum of the
    /// pseudo-header, as a right one: it merges the frame and replaces the checksum. rxo delivers a frame
    /// with another offset unchanged, because another field is to be completed.
    ChecksumElsewhere,
    /// A TAP ignores a header that marks a checksum as right, and its kernel verifies the checksum; rxo
    /// trusts its device.
    TrustedChecksum,
    /// rxo does not merge segments with equal IPv4 IDs and DF clear, because equal IDs then mean fragments of
    /// one packet; the kernel merges them since Linux 6.18.
    FixedIdWithoutDf,
    /// rxo does not merge packets with a routing header, a Home Address option or options that it cannot
    /// read; the kernel only requires all extension headers to be equal.
    OddExtensions,
    /// rxo delivers segments with an urgent pointer but without URG one by one; the kernel merges them and
    /// keeps the pointer of the first.
    UrgentPointer,
    /// rxo delivers segments without ACK, or with reserved bits, one by one; the kernel only requires these
    /// bits to be equal.
    OddFlags,
}

/// The exactness with which the deliveries of a [`Place`] are compared.
pub(crate) enum Level {
    /// Compares deliveries: boundaries, headers and payload.
    Deliveries,
    /// Compares only the frames that the deliveries stand for, in order.
    Frames,
    /// Compares only the payload, in order: headers differ in their checksums.
    Payload,
}

/// A part of a flow that the kernel treats as a separate flow.
pub(crate) struct Place<'w> {
    id: Vec<u8>,
    /// The frames, divided into polls: frames of two polls are not merged.
    pub(crate) polls: Vec<Vec<&'w Whole>>,
    pub(crate) level: Level,
}

/// The frames of a burst that have one flow key.
pub(crate) struct Flow<'w> {
    frames: Vec<Member<'w>>,
    /// `true` if the kernel refuses a frame of this flow, or one between the same addresses that may belong
    /// to it.
    has_refused: bool,
    kernel_knows_tags: bool,
}

/// A frame of a flow.
struct Member<'w> {
    whole: &'w Whole,
    /// The frame without the mark in its header that its checksum is right.
    doubted: Whole,
    reading: Reading,
    /// `true` if the kernel delivered what it held of the flow before this frame, because of a packet that
    /// for rxo belongs to no flow.
    is_behind_bar: bool,
}

impl<'w> Flow<'w> {
    pub(crate) fn new(burst: &'w [Whole], key: FlowKey, kernel_knows_tags: bool) -> Self {
        let mut flow = Self { frames: Vec::new(), has_refused: false, kernel_knows_tags };
        let mut is_behind_bar = false;
        for whole in burst {
            let (other, reading) = (key_of(&whole.bytes), reading(whole));
            if other != key {
                let is_near = other.has_addresses_of(&key);
                flow.has_refused |=
                    is_near && (is_refused(whole, &reading) || is_damaged(&reading));
                is_behind_bar |=
                    is_near && !matches!(reading, Reading::Fragment(_)) && bars(&whole.bytes, &key);
                continue;
            }
            flow.has_refused |= is_refused(whole, &reading);
            let mut doubted = whole.clone();
            doubted.header[0] &= !DATA_VALID;
            flow.frames.push(Member { whole, doubted, reading, is_behind_bar });
            is_behind_bar = false;
        }
        flow
    }

    /// `true` if a difference applies to this flow.
    pub(crate) fn has(&self, one: Difference) -> bool {
        let any = |is: &dyn Fn(&Whole, &Reading) -> bool| {
            self.frames.iter().any(|one| is(one.whole, &one.reading))
        };
        match one {
            Difference::RefusedOvertakes => self.has_refused,
            Difference::HeldSideBySide => {
                let mut ids = self.frames.iter().map(|one| side(one.whole, &one.reading));
                let first = ids.next();
                ids.any(|id| Some(id) != first)
            }
            Difference::Tags if self.kernel_knows_tags => false,
            other => any(&|whole, reading| concerns(other, whole, reading)),
        }
    }

    /// Returns the frames of the flow, divided as the kernel treats them when these differences are
    /// `applied`.
    pub(crate) fn places(&self, applied: &[Difference]) -> Vec<Place<'_>> {
        let mut places: Vec<Place<'_>> = Vec::new();
        let is_doubted = applied.contains(&Difference::TrustedChecksum);
        for Member { whole, doubted, reading, is_behind_bar } in &self.frames {
            let whole = if is_doubted { doubted } else { *whole };
            if *is_behind_bar {
                places.iter_mut().for_each(|place| place.polls.push(Vec::new()));
            }
            let id = id(whole, reading, applied);
            let at = places.iter().position(|place| place.id == id).unwrap_or_else(|| {
                places.push(Place { id, polls: vec![Vec::new()], level: Level::Deliveries });
                places.len() - 1
            });
            places[at].add(whole, reading, applied);
        }
        places
    }

    /// `true` if a delivery belongs to `place`.
    pub(crate) fn is_at(&self, bytes: &[u8], place: &Place<'_>, applied: &[Difference]) -> bool {
        // Only a frame that was not merged can be a refused one, and such a frame is delivered unchanged.
        let as_it_came = self.frames.iter().find(|one| one.whole.bytes == bytes);
        let id = match as_it_came {
            Some(one) => id(one.whole, &one.reading, applied),
            None => {
                let whole = Whole { header: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0], bytes: bytes.to_vec() };
                id(&whole, &reading(&whole), applied)
            }
        };
        id == place.id
    }
}

impl<'w> Place<'w> {
    fn add(&mut self, whole: &'w Whole, reading: &Reading, applied: &[Difference]) {
        let is = |one: Difference| applied.contains(&one) && concerns(one, whole, reading);
        let alone = is(Difference::Padding) || is(Difference::Tags);
        if is(Difference::ChecksumElsewhere) {
            self.level = Level::Payload;
        } else if LOOSE.into_iter().any(is) && !matches!(self.level, Level::Payload) {
            self.level = Level::Frames;
        }
        if alone {
            self.polls.push(vec![whole]);
            self.polls.push(Vec::new());
        } else if let Some(poll) = self.polls.last_mut() {
            poll.push(whole);
        }
    }
}

/// Differences with which rxo merges less than the kernel, and no policy makes it merge as much.
const LOOSE: [Difference; 6] = [
    Difference::TunnelPort,
    Difference::MixedChecksums,
    Difference::FixedIdWithoutDf,
    Difference::OddExtensions,
    Difference::UrgentPointer,
    Difference::OddFlags,
];

/// Returns the identifier of the [`Place`] that a frame belongs to.
fn id(whole: &Whole, reading: &Reading, applied: &[Difference]) -> Vec<u8> {
    let mut id = Vec::new();
    if applied.contains(&Difference::HeldSideBySide) {
        id = side(whole, reading);
    }
    if applied.contains(&Difference::RefusedOvertakes)
        && !(applied.contains(&Difference::Tags) && network_at(&whole.bytes) > 14)
    {
        id.push(is_refused(whole, reading).into());
    }
    id
}

/// Returns the bytes that the kernel compares before it assigns two frames to one flow.
fn side(whole: &Whole, reading: &Reading) -> Vec<u8> {
    let (Reading::Segment(one) | Reading::Datagram(one)) = reading else { return Vec::new() };
    let mut id = whole.bytes[..one.network_at].to_vec();
    id.push(one.udp_length.is_some().into());
    id.extend(one.flow_label.to_be_bytes());
    if one.v6 {
        id.extend(&one.between);
    }
    id
}

/// `true` if the kernel refuses a frame before it determines its flow.
fn is_refused(whole: &Whole, reading: &Reading) -> bool {
    let one = match reading {
        Reading::Segment(one) | Reading::Datagram(one) => one,
        Reading::Nothing(_) | Reading::OtherProtocol | Reading::Tunnel(..) => return false,
        Reading::Addresses(..) | Reading::Fragment(_) | Reading::Unknown(_) => return true,
    };
    // True for a datagram without payload, without checksum, or with bytes after it.
    let is_odd_datagram = one.udp_length.is_some_and(|length| {
        length == 8 || one.transport_at + length != whole.bytes.len() || one.checksum == 0
    });
    // The kernel does not verify a frame that it delivers by itself.
    let is_verified = !is_padded(whole, one) && !one.reserved_bit;
    let is_wrong = is_verified && !said(whole).checksum().is_partial() && !one.checksum_ok;
    let has_ip_options = !one.v6 && !one.between.is_empty();
    !one.ip_checksum_ok || has_ip_options || has_authentication(one) || is_odd_datagram || is_wrong
}

/// `true` if an authentication header is among the extension headers: the kernel does not parse the headers
/// after it.
fn has_authentication(one: &Segment) -> bool {
    let Some((&first, mut rest)) = one.between.split_first().filter(|_| one.v6) else {
        return false;
    };
    let mut kind = first;
    while let [next, units, ..] = rest {
        if kind == AUTHENTICATION {
            return true;
        }
        kind = *next;
        rest = rest.get((usize::from(*units) + 1) * 8..).unwrap_or_default();
    }
    false
}

/// `true` if the checksum of a frame is wrong, so that its ports may be wrong too.
fn is_damaged(reading: &Reading) -> bool {
    match reading {
        Reading::Segment(one) | Reading::Datagram(one) => !one.checksum_ok,
        _ => false,
    }
}

fn is_padded(whole: &Whole, one: &Segment) -> bool {
    whole.bytes.len() > one.network_at + one.packet_bytes()
}

/// `true` if the kernel assigns to flow `key` a packet whose IP length is wrong, so that rxo reads no ports
/// from it.
fn bars(bytes: &[u8], key: &FlowKey) -> bool {
    let network = network_at(bytes);
    let (mut transport, mut protocol) = match bytes.get(network..network + 20) {
        Some(ip @ [0x45, ..]) if internet_checksum(ip) == 0 => (network + 20, ip[9]),
        Some(ip) if ip[0] >> 4 == 6 => (network + 40, ip[6]),
        _ => return false,
    };
    // Skips hop-by-hop options, routing headers and destination options, as the kernel does.
    while bytes[network] >> 4 == 6
        && matches!(protocol, 0 | 43 | 60)
        && let Some([next, units]) = bytes.get(transport..transport + 2)
    {
        (protocol, transport) = (*next, transport + (usize::from(*units) + 1) * 8);
    }
    let Some(rest) = bytes.get(transport..) else { return false };
    let is_readable = match protocol {
        6 => rest.len() >= 20 && (20..=rest.len()).contains(&(usize::from(rest[12] >> 4) * 4)),
        17 => {
            rest.len() > 8
                && rest[4..6] == (rest.len() as u16).to_be_bytes()
                && rest[6..8] != [0; 2]
        }
        _ => false,
    };
    let ports = [key.source_port().to_be_bytes(), key.destination_port().to_be_bytes()].concat();
    is_readable && rest[..4] == ports
}

/// `true` if a difference concerns this frame.
fn concerns(difference: Difference, whole: &Whole, reading: &Reading) -> bool {
    let (Reading::Segment(one) | Reading::Datagram(one)) = reading else { return false };
    let is_tcp = one.udp_length.is_none();
    match difference {
        Difference::RefusedOvertakes | Difference::HeldSideBySide => false,
        Difference::CeMarks => one.traffic_class & 3 == 3,
        Difference::Padding => is_padded(whole, one),
        Difference::Tags => one.network_at > 14,
        Difference::TunnelPort => !is_tcp && is_tunnel(one),
        Difference::MixedChecksums => said(whole).checksum().is_partial(),
        Difference::ChecksumElsewhere => {
            let field = if is_tcp { 16 } else { 6 };
            let status = said(whole).checksum();
            status.is_elsewhere(one.transport_at, field) || has_wrong_seed(whole, one)
        }
        Difference::TrustedChecksum => {
            said(whole).checksum() == ChecksumStatus::Verified && !one.checksum_ok
        }
        Difference::FixedIdWithoutDf => !one.v6 && !one.dont_fragment,
        Difference::OddExtensions => one.odd_extensions,
        Difference::UrgentPointer => is_tcp && one.urgent != 0 && one.flags & URG == 0,
        Difference::OddFlags => is_tcp && (one.flags & ACK == 0 || one.flags & RESERVED != 0),
    }
}

/// `true` if a checksum is marked as partial and its field is not the sum of the pseudo-header.
pub(crate) fn has_wrong_seed(whole: &Whole, one: &Segment) -> bool {
    said(whole).checksum().is_partial() && one.checksum != seed(one)
}

/// Returns the sum of the pseudo-header.
fn seed(one: &Segment) -> u16 {
    let (protocol, bytes) = match one.udp_length {
        Some(length) => (17, length),
        None => (6, one.payload_at - one.transport_at + one.payload.len()),
    };
    pseudo_header_sum(&one.ends.addresses, protocol, bytes)
}

fn said(whole: &Whole) -> VnetHeader {
    VnetHeader::read(&whole.header).unwrap()
}

fn is_tunnel(one: &Segment) -> bool {
    const TUNNELS: [u16; 9] = [1701, 2152, 4500, 4789, 4790, 6080, 6081, 6635, 8472];
    TUNNELS.contains(&one.ports.0) || TUNNELS.contains(&one.ports.1)
}

const AUTHENTICATION: u8 = 51;
const DATA_VALID: u8 = 2;
const ACK: u16 = 0x10;
const URG: u16 = 0x20;
const RESERVED: u16 = 0xe00;

impl Difference {
    pub(crate) const ALL: [Self; 13] = [
        Self::RefusedOvertakes,
        Self::HeldSideBySide,
        Self::CeMarks,
        Self::Padding,
        Self::Tags,
        Self::TunnelPort,
        Self::MixedChecksums,
        Self::ChecksumElsewhere,
        Self::TrustedChecksum,
        Self::FixedIdWithoutDf,
        Self::OddExtensions,
        Self::UrgentPointer,
        Self::OddFlags,
    ];

    /// `true` if the difference does not occur with some kernels.
    pub(crate) const fn depends_on_kernel(self) -> bool {
        matches!(self, Self::Tags | Self::FixedIdWithoutDf)
    }
}
