//! The expected next header, compared in one go.
//!
//! A segment that only continues the last one differs from it in four fields: IP ID, IP checksum,
//! SEQ and TCP checksum. The first three follow from the last segment's; the fourth is verified
//! apart. So the whole header that must come next is known, and a frame is compared with it in
//! eight to ten words, without a branch between them. Where this says no, the full rules decide.

use rxo_frame::{ChecksumStatus, Frame, VlanTag};
use rxo_wire::{IpVersion, Plain, plain_v4, plain_v4_checksum, plain_v6};

use crate::held::{Held, IdPattern};

/// TCP's fixed header and the timestamp option with its padding.
const TCP_BYTES: usize = 32;
const ETHERNET_BYTES: usize = 14;

/// How the headers of one IP version are read as words.
pub(crate) trait Shape {
    /// IP and TCP header, options that are not there included.
    type Words: Copy;
    /// The version.
    const VERSION: IpVersion;
    /// The IP header, in bytes.
    const IP_BYTES: usize;

    /// Reads a plain packet.
    fn plain(packet: &[u8]) -> Option<Plain>;

    /// Whether the IP header's checksum is right, if it has one.
    fn is_checksum_right(packet: &[u8]) -> bool;

    /// Reads the words from the first byte of the IP header.
    fn read(packet: &[u8]) -> Option<Self::Words>;

    /// Zero when `other` is what was expected.
    fn differing(expected: &Self::Words, other: &Self::Words, options: Options) -> u64;

    /// Moves to the segment after, `payload_bytes` further, the ID `step` more.
    fn advance(words: &mut Self::Words, payload_bytes: u32, step: u16);

    /// How much the IPv4 ID counts from `last` to `next`, two packets whose lengths and addresses are
    /// known to be alike; `None` when it does neither stay nor count by one as `pattern` wants, or
    /// when the headers differ in more than ID and checksum.
    fn step(pattern: IdPattern, last: &[u8], next: &[u8]) -> Option<u16>;

    /// How many times `advance` stays exact: until ID or IP checksum would wrap.
    fn steps_to_wrap(words: &Self::Words, step: u16) -> u32;
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

/// IPv4 without options. The words, most significant byte first: version to fragment offset; TTL,
/// protocol, checksum and source. Then as they lie: both addresses. Then the ports and SEQ, most
/// significant first. Then ACK to window; checksum to options; timestamp.
pub(crate) struct V4;

const V4_BYTES: usize = 20 + TCP_BYTES;
const DONT_FRAGMENT: u64 = 0x4000;

impl Shape for V4 {
    type Words = [u64; 7];
    const VERSION: IpVersion = IpVersion::V4;
    const IP_BYTES: usize = 20;

    #[inline(always)]
    fn plain(packet: &[u8]) -> Option<Plain> {
        plain_v4(packet, 0)
    }

    #[inline(always)]
    fn is_checksum_right(packet: &[u8]) -> bool {
        plain_v4_checksum(packet)
    }

    #[inline(always)]
    fn read(packet: &[u8]) -> Option<[u64; 7]> {
        let headers: &[u8; V4_BYTES] = packet.first_chunk()?;
        let word = |at: usize| word(headers, at);
        let number = |at: usize| u64::from_be(word(at));
        Some([number(0), number(8), word(12), number(20), word(28), word(36), word(44)])
    }

    #[inline(always)]
    fn differing(expected: &[u64; 7], other: &[u64; 7], options: Options) -> u64 {
        let [a, b, c, d, e, f, g] = expected;
        let [t, u, v, w, x, y, z] = other;
        let fixed = (a ^ t) | (b ^ u) | (c ^ v) | (d ^ w) | (e ^ x);
        fixed | (f ^ y) & options.first | (g ^ z) & options.second
    }

    #[inline(always)]
    fn advance(words: &mut [u64; 7], payload_bytes: u32, step: u16) {
        // Counting the ID up takes one from the one's complement checksum.
        words[0] = words[0].wrapping_add(u64::from(step) << 16);
        words[1] = words[1].wrapping_sub(u64::from(step) << 32);
        words[3] = further(words[3], payload_bytes);
    }

    #[inline(always)]
    fn step(pattern: IdPattern, last: &[u8], next: &[u8]) -> Option<u16> {
        let (last, next): (&[u8; 20], &[u8; 20]) = (last.first_chunk()?, next.first_chunk()?);
        let step = id_step(pattern, number(last, 0), number(next, 0))?;
        let id = number(last, 0).wrapping_add(u64::from(step) << 16) ^ number(next, 0);
        let checksum = number(last, 8).wrapping_sub(u64::from(step) << 32) ^ number(next, 8);
        (id | checksum == 0).then_some(step)
    }

    #[inline(always)]
    fn steps_to_wrap(words: &[u64; 7], step: u16) -> u32 {
        let (id, checksum) = ((words[0] >> 16) as u16, (words[1] >> 32) as u16);
        if step == 0 { u32::MAX } else { u32::from(checksum.min(u16::MAX - id)) }
    }
}

/// IPv6 without extension headers: version to hop limit and both addresses as they lie, then as
/// in [`V4`].
pub(crate) struct V6;

const V6_BYTES: usize = 40 + TCP_BYTES;

impl Shape for V6 {
    type Words = [u64; 9];
    const VERSION: IpVersion = IpVersion::V6;
    const IP_BYTES: usize = 40;

    #[inline(always)]
    fn plain(packet: &[u8]) -> Option<Plain> {
        plain_v6(packet, 0)
    }

    #[inline(always)]
    fn is_checksum_right(_packet: &[u8]) -> bool {
        true
    }

    #[inline(always)]
    fn read(packet: &[u8]) -> Option<[u64; 9]> {
        let headers: &[u8; V6_BYTES] = packet.first_chunk()?;
        let word = |at: usize| word(headers, at);
        let ports_and_seq = u64::from_be(word(40));
        Some([
            word(0),
            word(8),
            word(16),
            word(24),
            word(32),
            ports_and_seq,
            word(48),
            word(56),
            word(64),
        ])
    }

    #[inline(always)]
    fn differing(expected: &[u64; 9], other: &[u64; 9], options: Options) -> u64 {
        let [a, b, c, d, e, f, g, h, i] = expected;
        let [r, s, t, u, v, w, x, y, z] = other;
        let fixed = (a ^ r) | (b ^ s) | (c ^ t) | (d ^ u) | (e ^ v) | (f ^ w) | (g ^ x);
        fixed | (h ^ y) & options.first | (i ^ z) & options.second
    }

    #[inline(always)]
    fn advance(words: &mut [u64; 9], payload_bytes: u32, _step: u16) {
        words[5] = further(words[5], payload_bytes);
    }

    #[inline(always)]
    fn step(_pattern: IdPattern, last: &[u8], next: &[u8]) -> Option<u16> {
        let (last, next): (&[u8; 8], &[u8; 8]) = (last.first_chunk()?, next.first_chunk()?);
        (last == next).then_some(0)
    }

    #[inline(always)]
    fn steps_to_wrap(_words: &[u64; 9], _step: u16) -> u32 {
        u32::MAX
    }
}

/// Moves the sequence number, a word's lower half, which wraps by itself.
#[inline(always)]
fn further(ports_and_seq: u64, payload_bytes: u32) -> u64 {
    let seq = (ports_and_seq as u32).wrapping_add(payload_bytes);
    ports_and_seq & !u64::from(u32::MAX) | u64::from(seq)
}

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
pub(crate) struct Expected<S: Shape> {
    link: [u64; 3],
    words: S::Words,
    options: Options,
    frame_bytes: usize,
    network: usize,
    payload_bytes: u32,
    checksum: ChecksumStatus,
    vlan: Option<VlanTag>,
    /// 1 when the IPv4 ID counts; 0 when it stays, and for IPv6.
    step: u16,
    /// How many more segments can be told from this expectation.
    steps: u32,
}

impl<S: Shape> Expected<S> {
    /// What follows `last`, the last segment of `held`, whose IP header begins at `network`. Where it
    /// is still open whether the IPv4 ID counts, `next` decides. `None` when only the full rules can
    /// tell.
    #[inline(always)]
    pub(crate) fn after<B: AsRef<[u8]>>(
        held: &Held,
        last: &Frame<B>,
        next: &[u8],
        network: usize,
    ) -> Option<Self> {
        let bytes = last.bytes();
        let packet = bytes.get(network..)?;
        let step = match S::VERSION {
            IpVersion::V4 => {
                let (last, next) =
                    (packet.first_chunk::<8>()?, next.get(network..)?.first_chunk()?);
                id_step(held.id_pattern, number(last, 0), number::<8>(next, 0))?
            }
            IpVersion::V6 => 0,
        };
        let mut expected = Self {
            link: link_words(bytes, network)?,
            words: S::read(packet)?,
            options: Options::of(usize::from(held.header_bytes - held.transport))?,
            frame_bytes: bytes.len(),
            network,
            payload_bytes: held.last_payload_bytes,
            checksum: last.checksum,
            vlan: last.vlan,
            step,
            steps: 0,
        };
        expected.steps = S::steps_to_wrap(&expected.words, step);
        S::advance(&mut expected.words, expected.payload_bytes, step);
        Some(expected)
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

    /// Whether `next` is the expected segment, its TCP checksum aside.
    #[inline(always)]
    pub(crate) fn is_met_by<B: AsRef<[u8]>>(&self, next: &Frame<B>) -> bool {
        let bytes = next.bytes();
        let is_alike = bytes.len() == self.frame_bytes
            && next.checksum == self.checksum
            && next.gso.is_none()
            && next.vlan == self.vlan;
        if !is_alike {
            return false;
        }
        let (Some(packet), Some(link)) =
            (bytes.get(self.network..), link_words(bytes, self.network))
        else {
            return false;
        };
        let [a, b, c] = self.link;
        let [x, y, z] = link;
        S::read(packet).is_some_and(|words| {
            (a ^ x) | (b ^ y) | (c ^ z) | S::differing(&self.words, &words, self.options) == 0
        })
    }

    /// Moves on by one segment.
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        S::advance(&mut self.words, self.payload_bytes, self.step);
    }
}

/// Whether the IPv4 ID counts from one segment to the next, both given as the first word of their
/// headers: 0 or 1, `None` when it does neither.
#[inline(always)]
fn id_step(pattern: IdPattern, last: u64, next: u64) -> Option<u16> {
    let step = match pattern {
        IdPattern::Fixed => 0,
        IdPattern::Incrementing => 1,
        IdPattern::Undecided => ((next >> 16) as u16).wrapping_sub((last >> 16) as u16),
    };
    // Equal IDs without DF would name fragments of one packet.
    (step == 1 || (step == 0 && last & DONT_FRAGMENT != 0)).then_some(step)
}

/// The link-layer header in words that overlap: addresses and type, and the eight bytes before
/// the IP header, which hold two VLAN tags if there are; nothing for raw IP.
#[inline(always)]
fn link_words(bytes: &[u8], network: usize) -> Option<[u64; 3]> {
    if network < ETHERNET_BYTES {
        return Some([0; 3]);
    }
    let header: &[u8; ETHERNET_BYTES] = bytes.first_chunk()?;
    if network == ETHERNET_BYTES {
        return Some([word(header, 0), word(header, 6), 0]);
    }
    let tags = u64::from_ne_bytes(*bytes.get(network - 8..)?.first_chunk()?);
    Some([word(header, 0), word(header, 6), tags])
}
