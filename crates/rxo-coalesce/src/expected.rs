//! The expected next header, compared in one go.
//!
//! A segment that only continues the last one differs from it in four fields: IP ID, IP checksum,
//! SEQ and TCP checksum. The first three follow from the last segment's; the fourth is verified
//! apart. So the whole header that must come next is known, and a frame is compared with it in
//! eight to ten words. SEQ is asked first: it says of most frames that they belong to another flow.
//! What counts is kept; what must be alike is read again where the last segment has it, which costs
//! no more than reading a copy and spares making one. Where this says no, the full rules decide.

use core::mem::discriminant;

use rxo_frame::{ChecksumStatus, Frame, VlanTag};
use rxo_wire::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, FlowKey, Ip, IpVersion, Plain, plain_v4, plain_v4_checksum,
    plain_v4_key, plain_v6, plain_v6_key,
};

use crate::held::{Held, IdPattern};

/// Of the mark CE the bit that ECT(0), which nearly all other marked packets have, has not.
const ECT_1: u8 = 1;
/// TCP's fixed header and the timestamp option with its padding.
const TCP_BYTES: usize = 32;
const ETHERNET_BYTES: usize = 14;

/// Evaluates an `Option` for the version of the IP header that a frame has: `$shape` is its [`Shape`], `$network` is
/// where the header begins. `None` for a frame without one. A macro, so that each version has code of its own.
macro_rules! by_ip_version {
    (($link:expr, $bytes:expr), $shape:ident, $network:ident => $call:expr) => {
        match $link {
            LinkKind::Ethernet => match ethertype($bytes) {
                Some(ETHERTYPE_IPV4) => by_ip_version!(V4, ETHERNET_HEADER_BYTES, $shape, $network => $call),
                Some(ETHERTYPE_IPV6) => by_ip_version!(V6, ETHERNET_HEADER_BYTES, $shape, $network => $call),
                _ => None,
            },
            LinkKind::RawIp => match $bytes.first().map(|first| first >> 4) {
                Some(4) => by_ip_version!(V4, 0, $shape, $network => $call),
                Some(6) => by_ip_version!(V6, 0, $shape, $network => $call),
                _ => None,
            },
        }
    };
    ($version:ty, $at:expr, $shape:ident, $network:ident => $call:expr) => {{
        type $shape = $version;
        let $network = $at;
        $call
    }};
}
pub(crate) use by_ip_version;

/// How the headers of one IP version are read as words.
pub(crate) trait Shape {
    /// IP and TCP header, options that are not there included.
    type Headers: AsMut<[u8]>;
    /// The word of the IP header in which something counts from segment to segment, if one does.
    type Counting: Copy;
    /// The version.
    const VERSION: IpVersion;
    /// The type that an Ethernet header has before it.
    const ETHERTYPE: u16;
    /// The IP header, in bytes.
    const IP_BYTES: usize;
    /// Headers of zeros.
    const ZEROS: Self::Headers;

    /// The flow of a packet that may be plain; `None` where it cannot be.
    fn key(packet: &[u8]) -> Option<FlowKey>;

    /// Reads a plain packet.
    fn plain(packet: &[u8]) -> Option<Plain>;

    /// Whether the IP header's checksum is right, if it has one.
    fn is_checksum_right(packet: &[u8]) -> bool;

    /// Whether the packet may be marked CE (RFC 3168 section 5): it has a bit of that mark that few have.
    fn may_be_marked_ce(packet: &[u8]) -> bool;

    /// The IP header of a packet without options, fragments and extension headers; `None` if it is cut short.
    /// Its checksum is taken as right.
    fn ip(packet: &[u8]) -> Option<Ip>;

    /// The headers that `packet` begins with.
    fn headers(packet: &[u8]) -> Option<&Self::Headers>;

    /// SEG.SEQ.
    fn seq(headers: &Self::Headers) -> u32;

    /// What counts.
    fn counting(headers: &Self::Headers) -> Self::Counting;

    /// Zero when both count alike.
    fn miscounting(expected: Self::Counting, other: Self::Counting) -> u64;

    /// Zero when everything is alike but what counts, SEQ and the TCP checksum.
    fn differing(last: &Self::Headers, next: &Self::Headers, options: Options) -> u64;

    /// Moves to the segment after, the ID `step` more.
    fn advance(counting: &mut Self::Counting, step: u16);

    /// How many times `advance` stays exact: until ID or IP checksum would wrap.
    fn steps_to_wrap(counting: Self::Counting, step: u16) -> u32;
}

/// The headers that `packet` begins with. A `SHORT` packet may end before them; they are then copied to
/// `room`, with zeros for the options that it has no room for.
#[inline(always)]
pub(crate) fn headers_in<'a, S: Shape, const SHORT: bool>(
    packet: &'a [u8],
    room: &'a mut S::Headers,
) -> Option<&'a S::Headers> {
    if !SHORT {
        return S::headers(packet);
    }
    let bytes = room.as_mut();
    let copied = bytes.len().min(packet.len());
    bytes.get_mut(..copied)?.copy_from_slice(packet.get(..copied)?);
    Some(room)
}

/// Which bits of the last two words count.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    /// TCP checksum, urgent pointer, the first option bytes.
    first: u64,
    /// The timestamp's values.
    second: u64,
}

impl Options {
    /// For a TCP header of so many bytes: none, or only the timestamp.
    #[inline(always)]
    fn of(tcp_header_bytes: usize) -> Option<Self> {
        match tcp_header_bytes {
            20 => Some(Self { first: CHECKSUM_AND_OPTIONS_OUT, second: 0 }),
            TCP_BYTES => Some(Self { first: CHECKSUM_OUT, second: u64::MAX }),
            _ => None,
        }
    }
}

const CHECKSUM_OUT: u64 = u64::from_ne_bytes([0, 0, 255, 255, 255, 255, 255, 255]);
const CHECKSUM_AND_OPTIONS_OUT: u64 = u64::from_ne_bytes([0, 0, 255, 255, 0, 0, 0, 0]);

/// IPv4 without options. What counts stands in one word, most significant byte first: ID to checksum.
/// Then as they lie: version to length; addresses; destination and ports; ACK to window; checksum to
/// options; timestamp.
pub(crate) struct V4;

const V4_BYTES: usize = 20 + TCP_BYTES;
const DONT_FRAGMENT: u64 = 0x4000;

impl Shape for V4 {
    type Headers = [u8; V4_BYTES];
    type Counting = u64;
    const VERSION: IpVersion = IpVersion::V4;
    const ETHERTYPE: u16 = ETHERTYPE_IPV4;
    const IP_BYTES: usize = 20;
    const ZEROS: [u8; V4_BYTES] = [0; V4_BYTES];

    #[inline(always)]
    fn key(packet: &[u8]) -> Option<FlowKey> {
        plain_v4_key(packet, 0)
    }

    #[inline(always)]
    fn plain(packet: &[u8]) -> Option<Plain> {
        plain_v4(packet, 0)
    }

    #[inline(always)]
    fn is_checksum_right(packet: &[u8]) -> bool {
        plain_v4_checksum(packet)
    }

    #[inline(always)]
    fn may_be_marked_ce(packet: &[u8]) -> bool {
        packet.get(1).is_some_and(|tos| tos & ECT_1 != 0)
    }

    #[inline(always)]
    fn ip(packet: &[u8]) -> Option<Ip> {
        let header: &[u8; 20] = packet.first_chunk()?;
        Some(Ip {
            traffic_class: header[1],
            hop_limit: header[8],
            flow_label: 0,
            id: u16::from_be_bytes([header[4], header[5]]),
            dont_fragment: header[6] & 0x40 != 0,
            ..ORDINARY_IP
        })
    }

    #[inline(always)]
    fn headers(packet: &[u8]) -> Option<&[u8; V4_BYTES]> {
        packet.first_chunk()
    }

    #[inline(always)]
    fn seq(headers: &[u8; V4_BYTES]) -> u32 {
        u32::from_be_bytes([headers[24], headers[25], headers[26], headers[27]])
    }

    #[inline(always)]
    fn counting(headers: &[u8; V4_BYTES]) -> u64 {
        number(headers, 4)
    }

    #[inline(always)]
    fn miscounting(expected: u64, other: u64) -> u64 {
        expected ^ other
    }

    #[inline(always)]
    fn differing(last: &[u8; V4_BYTES], next: &[u8; V4_BYTES], options: Options) -> u64 {
        let differing = |at| word(last, at) ^ word(next, at);
        let first = |of: &[u8; V4_BYTES]| u32::from_ne_bytes([of[0], of[1], of[2], of[3]]);
        let ip = u64::from(first(last) ^ first(next)) | differing(12) | differing(16);
        let fixed = ip | differing(28);
        fixed | differing(36) & options.first | differing(44) & options.second
    }

    #[inline(always)]
    fn advance(counting: &mut u64, step: u16) {
        // Counting the ID up takes one from the one's complement checksum.
        *counting = counting.wrapping_add((u64::from(step) << 48).wrapping_sub(step.into()));
    }

    #[inline(always)]
    fn steps_to_wrap(counting: u64, step: u16) -> u32 {
        let (id, checksum) = ((counting >> 48) as u16, counting as u16);
        if step == 0 { u32::MAX } else { u32::from(checksum.min(u16::MAX - id)) }
    }
}

/// IPv6 without extension headers, where nothing counts but SEQ. As they lie: version to hop limit
/// and both addresses; ports, which share a word with the end of the destination. Then as in [`V4`].
pub(crate) struct V6;

const V6_BYTES: usize = 40 + TCP_BYTES;

impl Shape for V6 {
    type Headers = [u8; V6_BYTES];
    type Counting = ();
    const VERSION: IpVersion = IpVersion::V6;
    const ETHERTYPE: u16 = ETHERTYPE_IPV6;
    const IP_BYTES: usize = 40;
    const ZEROS: [u8; V6_BYTES] = [0; V6_BYTES];

    #[inline(always)]
    fn key(packet: &[u8]) -> Option<FlowKey> {
        plain_v6_key(packet, 0)
    }

    #[inline(always)]
    fn plain(packet: &[u8]) -> Option<Plain> {
        plain_v6(packet, 0)
    }

    #[inline(always)]
    fn is_checksum_right(_packet: &[u8]) -> bool {
        true
    }

    #[inline(always)]
    fn may_be_marked_ce(packet: &[u8]) -> bool {
        packet.get(1).is_some_and(|byte| byte & ECT_1 << 4 != 0)
    }

    #[inline(always)]
    fn ip(packet: &[u8]) -> Option<Ip> {
        let header: &[u8; 8] = packet.first_chunk()?;
        let first = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
        Some(Ip {
            version: IpVersion::V6,
            traffic_class: (first >> 20) as u8,
            hop_limit: header[7],
            flow_label: first & 0x000f_ffff,
            ..ORDINARY_IP
        })
    }

    #[inline(always)]
    fn headers(packet: &[u8]) -> Option<&[u8; V6_BYTES]> {
        packet.first_chunk()
    }

    #[inline(always)]
    fn seq(headers: &[u8; V6_BYTES]) -> u32 {
        u32::from_be_bytes([headers[44], headers[45], headers[46], headers[47]])
    }

    #[inline(always)]
    fn counting(_headers: &[u8; V6_BYTES]) {}

    #[inline(always)]
    fn miscounting((): (), (): ()) -> u64 {
        0
    }

    #[inline(always)]
    fn differing(last: &[u8; V6_BYTES], next: &[u8; V6_BYTES], options: Options) -> u64 {
        let differing = |at| word(last, at) ^ word(next, at);
        let ip = differing(0) | differing(8) | differing(16) | differing(24) | differing(32);
        let fixed = ip | differing(36) | differing(48);
        fixed | differing(56) & options.first | differing(64) & options.second
    }

    #[inline(always)]
    fn advance((): &mut (), _step: u16) {}

    #[inline(always)]
    fn steps_to_wrap((): (), _step: u16) -> u32 {
        u32::MAX
    }
}

/// What the IP headers of ordinary segments have in common.
const ORDINARY_IP: Ip = Ip {
    version: IpVersion::V4,
    traffic_class: 0,
    hop_limit: 0,
    flow_label: 0,
    id: 0,
    dont_fragment: true,
    reserved_bit: false,
    has_options: false,
    has_odd_extensions: false,
    checksum_ok: true,
};

/// Eight bytes, the first the most significant.
#[inline(always)]
pub(crate) fn number<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    u64::from_be(word(bytes, at))
}

/// Eight bytes as they lie.
#[inline(always)]
pub(crate) fn word<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(word) => u64::from_ne_bytes(*word),
        None => 0,
    }
}

/// What the next frame of a flow must be, if it only continues the last.
pub(crate) struct Expected<'a, S: Shape> {
    /// The last segment: its frame and its headers, with which the next must be alike.
    last: &'a [u8],
    headers: &'a S::Headers,
    counting: S::Counting,
    seq: u32,
    options: Options,
    network: usize,
    payload_bytes: u32,
    checksum: ChecksumStatus,
    vlan: Option<VlanTag>,
    /// 1 when the IPv4 ID counts; 0 when it stays, and for IPv6.
    step: u16,
    /// How many more segments can be told from this expectation.
    steps: u32,
}

impl<'a, S: Shape> Expected<'a, S> {
    /// What follows `last`, the last segment of `held`, whose IP header begins at `network`. Where it
    /// is still open whether the IPv4 ID counts, `next` decides. `None` when only the full rules can
    /// tell. `SHORT` and `room` are those of [`headers_in`].
    #[inline(always)]
    pub(crate) fn after<B: AsRef<[u8]>, const SHORT: bool>(
        held: &Held,
        last: &'a Frame<B>,
        next: &[u8],
        network: usize,
        room: &'a mut S::Headers,
    ) -> Option<Self> {
        // With extension headers what follows is not what it is taken for.
        if usize::from(held.at.transport()) != network + S::IP_BYTES {
            return None;
        }
        let bytes = last.bytes();
        let packet = bytes.get(network..)?;
        let headers = headers_in::<S, SHORT>(packet, room)?;
        let step = match S::VERSION {
            IpVersion::V4 => {
                let (last, next) =
                    (packet.first_chunk::<8>()?, next.get(network..)?.first_chunk()?);
                id_step(held.id_pattern, number(last, 0), number::<8>(next, 0))?
            }
            IpVersion::V6 => 0,
        };
        let mut counting = S::counting(headers);
        let steps = S::steps_to_wrap(counting, step);
        S::advance(&mut counting, step);
        Some(Self {
            last: bytes,
            headers,
            counting,
            seq: held.next_seq.0,
            options: Options::of(usize::from(held.header_bytes - u16::from(held.at.transport())))?,
            network,
            payload_bytes: held.last_payload_bytes,
            checksum: last.checksum,
            vlan: last.vlan,
            step,
            steps,
        })
    }

    /// How many segments may be told before this has to be made anew.
    #[inline(always)]
    pub(crate) const fn steps(&self) -> u32 {
        self.steps
    }

    /// How much the IPv4 ID counts.
    #[inline(always)]
    pub(crate) const fn id_step(&self) -> u16 {
        self.step
    }

    /// Whether the metadata of the last segment's frame is bare: no VLAN tag, and a checksum that is verified or
    /// unknown. Nearly all is.
    #[inline(always)]
    pub(crate) const fn is_bare(&self) -> bool {
        self.vlan.is_none() && !self.checksum.is_partial()
    }

    /// Whether `next` is the expected segment, its TCP checksum aside; `SHORT` as in [`headers_in`]. `BARE` if
    /// [`Expected::is_bare`]: then less is compared.
    #[inline(always)]
    pub(crate) fn is_met_by<B: AsRef<[u8]>, const SHORT: bool, const BARE: bool>(
        &self,
        next: &Frame<B>,
    ) -> bool {
        let bytes = next.bytes();
        if bytes.len() != self.last.len() {
            return false;
        }
        let mut room = S::ZEROS;
        let packet = bytes.get(self.network..);
        let headers = packet.and_then(|packet| headers_in::<S, SHORT>(packet, &mut room));
        let Some(headers) = headers else { return false };
        let is_alike = S::seq(headers) == self.seq && next.gso.is_none();
        is_alike
            && self.has_metadata_of::<B, BARE>(next)
            && S::miscounting(self.counting, S::counting(headers))
                | S::differing(self.headers, headers, self.options)
                | differing_link(self.last, bytes, self.network)
                == 0
    }

    #[inline(always)]
    fn has_metadata_of<B, const BARE: bool>(&self, next: &Frame<B>) -> bool {
        if BARE {
            // No other status has fields.
            let is_alike = discriminant(&next.checksum) == discriminant(&self.checksum);
            is_alike && next.vlan.is_none()
        } else {
            next.checksum == self.checksum && next.vlan == self.vlan
        }
    }

    /// Moves on by one segment.
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        self.seq = self.seq.wrapping_add(self.payload_bytes);
        S::advance(&mut self.counting, self.step);
    }
}

/// Whether the IPv4 ID counts from one segment to the next, both given as the first word of their
/// headers: 0 or 1, `None` when it does neither.
#[inline(always)]
pub(crate) fn id_step(pattern: IdPattern, last: u64, next: u64) -> Option<u16> {
    let step = match pattern {
        IdPattern::Fixed => 0,
        IdPattern::Incrementing => 1,
        IdPattern::Undecided => ((next >> 16) as u16).wrapping_sub((last >> 16) as u16),
    };
    // Equal IDs without DF would name fragments of one packet.
    (step == 1 || (step == 0 && last & DONT_FRAGMENT != 0)).then_some(step)
}

/// Zero when the link-layer headers of two frames of one length are alike, in words that overlap:
/// addresses and type, and the eight bytes before the IP header, which hold two VLAN tags if there
/// are; nothing for raw IP.
#[inline(always)]
pub(crate) fn differing_link(last: &[u8], next: &[u8], network: usize) -> u64 {
    let (Some(last), Some(next)) = (last.get(..network), next.get(..network)) else { return 1 };
    let (Some(old), Some(new)) = (last.first_chunk::<14>(), next.first_chunk::<14>()) else {
        return 0;
    };
    let addresses = (word(old, 0) ^ word(new, 0)) | (word(old, 6) ^ word(new, 6));
    match (last.last_chunk::<8>(), next.last_chunk::<8>()) {
        (Some(old), Some(new)) if network > ETHERNET_BYTES => {
            addresses | (word(old, 0) ^ word(new, 0))
        }
        _ => addresses,
    }
}
