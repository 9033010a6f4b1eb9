//! Flow keys, and their hash.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::checksum::Sum;
use crate::tunnel::Tunnel;
use crate::{ETHERNET_HEADER_BYTES, Offsets, ethernet};

/// One direction of a connection: addresses, ports and VLANs. 40 bytes, compared as five words.
///
/// IPv4 addresses are kept as IPv4-mapped IPv6 addresses (RFC 4291, section 2.5.5.2). If the ports are
/// unknown, as in a fragment, both are 0; use [`FlowKey::has_addresses_of`] to compare such a key.
///
/// # Examples
/// ```
/// use rxo_wire::FlowKey;
///
/// let (client, server) = (0x0a00_0001, 0x0a00_0002);
/// let key = FlowKey::v4(client, server, 40_000 << 16 | 443, 0);
/// assert_eq!(format!("{key:?}"), "10.0.0.1:40000 > 10.0.0.2:443");
/// assert_eq!(key.reversed().source_port(), 443);
/// ```
#[derive(Clone, Copy, Eq, Default)]
pub struct FlowKey {
    /// Source address (2 words), destination address (2 words), then one word with VLANs and ports. Addresses
    /// and ports keep the byte order of the network within each half word of 32 bits. Thus creating a key and
    /// summing its addresses swap no bytes.
    words: [u64; 5],
}

/// The upper half of the second word of an IPv4-mapped address.
const MAPPED: u64 = (0xffff_u32.to_be() as u64) << 32;

/// The bit that marks a VLAN tag that a device removed from the packet. It distinguishes this tag from an equal
/// tag in the bytes of the packet.
const DEVICE_VLAN: u32 = 1 << 31;
/// The number that is added to the VLANs of a key for each tag.
const ONE_TAG: u32 = 1 << 24;
/// The bit that marks a flow inside a tunnel. In its key, the network identifier of the tunnel replaces the VLANs.
const IN_TUNNEL: u32 = 1 << 30;
/// The bit that distinguishes Geneve from VXLAN in the key of a flow inside a tunnel.
const IN_GENEVE: u32 = 1 << 29;

impl FlowKey {
    /// A key that no real flow has: all zeros.
    pub const NONE: Self = Self { words: [0; 5] };

    /// Creates the key of an IPv4 flow. `ports` has the source port in its upper half; `vlan` is the result of
    /// [`crate::VlanStack::key`].
    #[inline]
    #[must_use]
    pub const fn v4(source: u32, destination: u32, ports: u32, vlan: u32) -> Self {
        let source = MAPPED | source.to_be() as u64;
        let destination = MAPPED | destination.to_be() as u64;
        Self { words: [0, source, 0, destination, Self::tail(ports, vlan)] }
    }

    /// Creates the key of an IPv6 flow from the 32 bytes of source and destination address, as in the header.
    /// `ports` and `vlan` are as in [`FlowKey::v4`].
    #[inline]
    #[must_use]
    pub const fn v6(addresses: &[u8; 32], ports: u32, vlan: u32) -> Self {
        let (words, _) = addresses.as_chunks::<8>();
        Self {
            words: [
                Self::as_it_lies(words[0]),
                Self::as_it_lies(words[1]),
                Self::as_it_lies(words[2]),
                Self::as_it_lies(words[3]),
                Self::tail(ports, vlan),
            ],
        }
    }

    /// Returns the key of packets from `sender` to `receiver` without VLANs; `None` if their IP versions differ.
    #[must_use]
    pub fn between(sender: SocketAddr, receiver: SocketAddr) -> Option<Self> {
        let ports = u32::from(sender.port()) << 16 | u32::from(receiver.port());
        match (sender.ip(), receiver.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                Some(Self::v4(from.to_bits(), to.to_bits(), ports, 0))
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let mut addresses = [0; 32];
                addresses[..16].copy_from_slice(&from.octets());
                addresses[16..].copy_from_slice(&to.octets());
                Some(Self::v6(&addresses, ports, 0))
            }
            _ => None,
        }
    }

    /// Encodes the key in 40 bytes: source and destination as IPv6 addresses, VLANs, then source and
    /// destination port. The encoding is the same on every machine, and encoded keys sort by address.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 40] {
        let mut bytes = [0; 40];
        let (chunks, _) = bytes.as_chunks_mut::<8>();
        let halves = |word: u64| [((word >> 32) as u32).to_ne_bytes(), (word as u32).to_ne_bytes()];
        for (chunk, word) in chunks.iter_mut().zip(&self.words) {
            chunk.copy_from_slice(halves(*word).as_flattened());
        }
        let vlan = (self.words[4] >> 32) as u32;
        chunks[4] = ((vlan as u64) << 32 | self.ports() as u64).to_be_bytes();
        bytes
    }

    /// Decodes a key that [`FlowKey::to_bytes`] encoded.
    #[must_use]
    pub const fn from_bytes(bytes: &[u8; 40]) -> Self {
        let (addresses, tail) = bytes.split_at(32);
        let mut both = [0; 32];
        both.copy_from_slice(addresses);
        let mut rest = [0; 8];
        rest.copy_from_slice(tail);
        let tail = u64::from_be_bytes(rest);
        Self::v6(&both, tail as u32, (tail >> 32) as u32)
    }

    /// Returns the key of the TCP or UDP flow of `frame`. `at` contains the offsets of its headers. The result
    /// equals the key from [`parse`](crate::parse()), but this function parses only the VLAN tags. `None` if
    /// `frame` is too short for the offsets, or if its VLAN tags do not end at the offset of the IP header.
    #[must_use]
    pub fn read(frame: &[u8], at: Offsets) -> Option<Self> {
        let vlan = match at.network as usize {
            0 | ETHERNET_HEADER_BYTES => 0,
            network => {
                ethernet::read(frame).ok().filter(|link| link.network == network)?.vlans.key()
            }
        };
        let packet = frame.get(at.network as usize..)?;
        let word = |bytes: &[u8], at: usize| {
            bytes.get(at..).and_then(<[u8]>::first_chunk).map(|word| u32::from_be_bytes(*word))
        };
        let ports = word(frame, at.transport as usize)?;
        match packet.first()? >> 4 {
            4 => Some(Self::v4(word(packet, 12)?, word(packet, 16)?, ports, vlan)),
            _ => Some(Self::v6(packet.get(8..)?.first_chunk()?, ports, vlan)),
        }
    }

    #[inline]
    const fn as_it_lies(address: [u8; 8]) -> u64 {
        let [a, b, c, d, e, f, g, h] = address;
        (u32::from_ne_bytes([a, b, c, d]) as u64) << 32 | u32::from_ne_bytes([e, f, g, h]) as u64
    }

    #[inline]
    const fn tail(ports: u32, vlan: u32) -> u64 {
        (vlan as u64) << 32 | ports.to_be() as u64
    }

    /// Returns the ports of the key in host byte order, the source port in the upper half.
    #[inline]
    const fn ports(&self) -> u32 {
        u32::from_be(self.words[4] as u32)
    }

    /// Returns this key with its ports set to `ports`. Both ports of the key must be 0 before the call.
    #[inline]
    pub(crate) const fn with_ports(mut self, ports: u32) -> Self {
        self.words[4] |= ports.to_be() as u64;
        self
    }

    /// Returns the key with the VLAN tag that a device removed from the frame. The removed tag was the
    /// outermost one, so tags in the bytes of the frame come after it. A key contains the identifiers of two
    /// tags; the identifier of a third tag is left out.
    #[inline]
    #[must_use]
    pub const fn on_device_vlan(mut self, vlan_id: u16) -> Self {
        let in_bytes = (self.words[4] >> 32) as u32;
        let depth = in_bytes & 0x0300_0000;
        let first = in_bytes >> 12 & 0x0fff;
        let vlan = DEVICE_VLAN | depth | (vlan_id as u32 & 0x0fff) << 12 | first;
        self.words[4] = Self::tail(self.ports(), vlan);
        self
    }

    /// Returns the key as if the device had left the VLAN tag in the bytes of the frame. So a flow has the same
    /// key on devices that remove tags and on devices that keep them.
    #[inline]
    #[must_use]
    pub const fn with_tag_in_bytes(mut self) -> Self {
        let vlan = (self.words[4] >> 32) as u32;
        if vlan & DEVICE_VLAN != 0 {
            self.words[4] = Self::tail(self.ports(), (vlan & !DEVICE_VLAN) + ONE_TAG);
        }
        self
    }

    /// Returns the key of this flow inside a tunnel with a 24-bit network identifier, which replaces the
    /// VLANs. The key contains neither the VLANs of the inner or outer frame nor the outer addresses and
    /// ports.
    #[inline]
    #[must_use]
    pub const fn in_tunnel(mut self, tunnel: Tunnel, network: u32) -> Self {
        let kind = match tunnel {
            Tunnel::Vxlan => IN_TUNNEL,
            Tunnel::Geneve => IN_TUNNEL | IN_GENEVE,
        };
        self.words[4] = Self::tail(self.ports(), kind | network & 0x00ff_ffff);
        self
    }

    /// Returns `true` if this is the key of a flow inside a tunnel.
    #[inline]
    #[must_use]
    pub const fn is_in_tunnel(&self) -> bool {
        (self.words[4] >> 32) as u32 & (DEVICE_VLAN | IN_TUNNEL) == IN_TUNNEL
    }

    /// Returns the key with both ports 0: it is equal for all flows from the key's source to its destination on the
    /// same VLANs.
    #[inline]
    #[must_use]
    pub const fn without_ports(mut self) -> Self {
        self.words[4] = Self::tail(0, (self.words[4] >> 32) as u32);
        self
    }

    /// Returns the key of the other direction of the same connection.
    #[inline]
    #[must_use]
    pub const fn reversed(self) -> Self {
        let [a, b, c, d, tail] = self.words;
        let ports = self.ports().rotate_left(16);
        Self { words: [c, d, a, b, Self::tail(ports, (tail >> 32) as u32)] }
    }

    /// Returns `true` if both keys have the same addresses and VLANs. Ignores the ports.
    #[inline]
    #[must_use]
    pub fn has_addresses_of(&self, other: &Self) -> bool {
        self.words[..4] == other.words[..4] && self.words[4] >> 32 == other.words[4] >> 32
    }

    /// Returns the exclusive or of all words of both addresses and both ports; the result is equal for both directions.
    #[inline]
    pub(crate) const fn folded(&self) -> u32 {
        let [a, b, c, d, _] = self.words;
        let (all, ports) = (a ^ b ^ c ^ d, self.ports());
        u32::from_be((all >> 32) as u32 ^ all as u32) ^ (ports >> 16) ^ (ports & 0xffff)
    }

    /// Returns the sum of both addresses, for a pseudo-header. An IPv4 address counts as 32 bits, not in its
    /// mapped form.
    #[inline]
    #[must_use]
    pub const fn address_sum(&self) -> Sum {
        let [a, b, c, d, _] = self.words;
        // The mapped prefix 0xffff is a zero in one's complement, so it may remain in the sum.
        let lower = Self::word_sum(b).plus(Self::word_sum(d));
        // The first words of both IPv4-mapped addresses are 0.
        if a | c == 0 { lower } else { lower.plus(Self::word_sum(a)).plus(Self::word_sum(c)) }
    }

    #[inline]
    const fn word_sum(word: u64) -> Sum {
        Sum::from_raw((word >> 32) + (word & 0xffff_ffff))
    }

    /// Returns the IP address of the sender.
    #[must_use]
    pub fn source(&self) -> IpAddr {
        Self::address(self.words[0], self.words[1])
    }

    /// Returns the IP address of the receiver.
    #[must_use]
    pub fn destination(&self) -> IpAddr {
        Self::address(self.words[2], self.words[3])
    }

    /// Returns the port of the sender; 0 if unknown.
    #[must_use]
    pub const fn source_port(&self) -> u16 {
        (self.ports() >> 16) as u16
    }

    /// Returns the port of the receiver; 0 if unknown.
    #[must_use]
    pub const fn destination_port(&self) -> u16 {
        self.ports() as u16
    }

    /// Returns the address and the port of the sender.
    #[must_use]
    pub fn sender(&self) -> SocketAddr {
        SocketAddr::new(self.source(), self.source_port())
    }

    /// Returns the address and the port of the receiver.
    #[must_use]
    pub fn receiver(&self) -> SocketAddr {
        SocketAddr::new(self.destination(), self.destination_port())
    }

    fn address(high: u64, low: u64) -> IpAddr {
        let mut octets = [0; 16];
        let words = [(high >> 32) as u32, high as u32, (low >> 32) as u32, low as u32];
        for (octets, word) in octets.as_chunks_mut().0.iter_mut().zip(words) {
            *octets = word.to_ne_bytes();
        }
        Ipv6Addr::from(octets).to_canonical()
    }
}

impl PartialEq for FlowKey {
    /// Compares word by word without branches; the derived comparison would call `memcmp`.
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        let [a, b, c, d, e] = self.words;
        let [v, w, x, y, z] = other.words;
        (a ^ v) | (b ^ w) | (c ^ x) | (d ^ y) | (e ^ z) == 0
    }
}

impl core::hash::Hash for FlowKey {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.words.hash(state);
    }
}

impl fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = (self.source(), self.destination());
        write!(f, "{source}:{} > {destination}:{}", self.source_port(), self.destination_port())
    }
}

/// Hashes flow keys with a secret seed, so that an attacker without the seed cannot choose flows that collide in
/// a table.
///
/// Based on folded 64 × 64 → 128-bit multiplications of seeded words; takes about 3 ns. Not a cryptographic
/// hash: tables must bound their work even if an attacker finds collisions.
///
/// # Examples
/// ```
/// use rxo_wire::{FlowHasher, FlowKey};
///
/// let key = FlowKey::v4(0x0a00_0001, 0x0a00_0002, 40_000 << 16 | 443, 0);
/// let hasher = FlowHasher::new(7);
/// assert!(hasher.hash(&key) == hasher.hash(&key));
/// assert!(hasher.hash(&key) != FlowHasher::new(8).hash(&key));
/// ```
#[derive(Clone, Copy)]
pub struct FlowHasher {
    seeds: [u64; 6],
    /// The contribution of the first words of both addresses to the hash if these words are 0, as in IPv4 flows.
    /// Computed once.
    zeros: u64,
}

impl FlowHasher {
    /// Creates a hasher. Hashers with equal seeds return equal hashes.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        let mut seeds = [0; 6];
        let mut state = seed;
        let mut index = 0;
        while index < seeds.len() {
            // SplitMix64 (Steele, Lea, Flood 2014): spreads any seed over all words.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            seeds[index] = mixed ^ (mixed >> 31);
            index += 1;
        }
        Self { seeds, zeros: fold(seeds[0], seeds[1]) }
    }

    /// Returns the seeded hash of `key`.
    #[inline(always)]
    #[must_use]
    pub const fn hash(&self, key: &FlowKey) -> FlowHash {
        let [a, b, c, d, e] = key.words;
        let [s0, s1, s2, s3, s4, s5] = self.seeds;
        // Both words are 0 for IPv4, which the compiler often knows.
        let high = if a | c == 0 { self.zeros } else { fold(a ^ s0, c ^ s1) };
        let low = fold(b ^ s2, d ^ s3);
        // Ports often increment. A single multiplication by a seeded value could map many of them to few
        // buckets for an unlucky seed, so they are multiplied by a constant first.
        let tail = e.wrapping_mul(GOLDEN_RATIO) ^ s4;
        FlowHash(fold(high ^ tail, low ^ s5))
    }
}

impl fmt::Debug for FlowHasher {
    /// Formats the hasher without its secret seed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FlowHasher")
    }
}

/// A seeded hash of a flow key. All bits are equally usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowHash(pub u64);

/// A constant that mixes seeds: 2⁶⁴ divided by the golden ratio. Its consecutive multiples are far apart.
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}
