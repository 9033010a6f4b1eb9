//! Unpredictable values: initial sequence numbers (RFC 6528) and timestamp offsets (RFC 7323, section 5.4).

use core::net::IpAddr;

use rxo_frame::Instant;
use rxo_wire::{FlowKey, SeqNumber};

/// A secret of the host: random, the same for all its connections, never revealed.
#[derive(Clone, Copy)]
pub struct Secret(pub [u64; 2]);

impl core::fmt::Debug for Secret {
    /// Formats the secret without revealing it.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Returns an unpredictable number for each destination: F and G of RFC 6056, section 3.3.4. `pair` is the
    /// flow key of the segments to send; its source port is ignored.
    #[must_use]
    pub fn port_hash(self, pair: &FlowKey) -> u64 {
        keyed_at(self, pair, 0, b'p')
    }
}

/// Returns ISN = M + F(local, remote, secret), where M counts every 4 microseconds and F is SipHash-2-4 (RFC
/// 6528, section 3).
pub(crate) fn initial_sequence_number(secret: Secret, pair: &FlowKey, now: Instant) -> SeqNumber {
    let ticks = (now.as_nanos() / NANOS_PER_TICK) as u32;
    SeqNumber(ticks.wrapping_add(keyed(secret, pair, b'i') as u32))
}

/// Returns the offset between this connection's timestamps and the clock. The offset hides the host's uptime.
pub(crate) fn timestamp_offset(secret: Secret, pair: &FlowKey) -> u32 {
    keyed(secret, pair, b't') as u32
}

/// Returns the part of a SYN cookie that only this host can compute. `values` contains the public values that
/// the cookie authenticates.
pub(crate) fn cookie_hash(secret: Secret, pair: &FlowKey, values: u64) -> u32 {
    // Only the first hash yields the key of the second.
    let key = Secret([keyed(secret, pair, b'c'), secret.0[1]]);
    siphash(key, &values.to_le_bytes()) as u32
}

fn keyed(secret: Secret, pair: &FlowKey, purpose: u8) -> u64 {
    keyed_at(secret, pair, pair.source_port(), purpose)
}

/// Returns the keyed hash of `pair`, with `source_port` in place of the source port of `pair`.
fn keyed_at(secret: Secret, pair: &FlowKey, source_port: u16, purpose: u8) -> u64 {
    let mut input = [0; 37];
    put_address(&mut input[..16], pair.source());
    put_address(&mut input[16..32], pair.destination());
    input[32..34].copy_from_slice(&source_port.to_be_bytes());
    input[34..36].copy_from_slice(&pair.destination_port().to_be_bytes());
    input[36] = purpose;
    siphash(secret, &input)
}

fn put_address(to: &mut [u8], address: IpAddr) {
    let octets = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    to.copy_from_slice(&octets);
}

/// Returns the SipHash-2-4 of `input` (Aumasson and Bernstein 2012).
fn siphash(Secret([k0, k1]): Secret, input: &[u8]) -> u64 {
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let (words, rest) = input.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = input.len() as u8;
    for word in words.iter().chain([&last]).map(|bytes| u64::from_le_bytes(*bytes)) {
        v[3] ^= word;
        round(&mut v);
        round(&mut v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut v);
    }
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

/// The period of the ISN clock in nanoseconds: about 4 microseconds (RFC 9293, section 3.4.1, MUST-8).
const NANOS_PER_TICK: u64 = 4_000;

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: Secret = Secret([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);

    /// Compares with the example in appendix A of the SipHash paper.
    #[test]
    fn siphash_is_the_published_one() {
        let input: [u8; 15] = core::array::from_fn(|index| index as u8);
        assert_eq!(siphash(SECRET, &input), 0xa129_ca61_49be_45e5);
    }

    /// The initial sequence number follows the clock (RFC 9293, section 3.4.1, MUST-8).
    #[test]
    fn the_number_grows_with_the_clock() {
        let pair = FlowKey::v4(1, 2, 3 << 16 | 4, 0);
        let first = initial_sequence_number(SECRET, &pair, Instant::ZERO);
        let second = initial_sequence_number(SECRET, &pair, Instant::from_micros(4_000_000));
        assert_eq!(second - first, 1_000_000);
    }

    /// The number of one connection reveals nothing about another (RFC 6528, section 3 (a, b), and RFC 9293,
    /// section 3.4.1, MUST-9, SHLD-1).
    #[test]
    fn connections_and_secrets_have_their_own_numbers() {
        let number = |secret, port| {
            initial_sequence_number(secret, &FlowKey::v4(1, 2, port, 0), Instant::ZERO)
        };
        assert_ne!(number(SECRET, 4), number(SECRET, 5));
        assert_ne!(number(SECRET, 4), number(Secret([1, 2]), 4));
        let pair = FlowKey::v4(1, 2, 4, 0);
        assert_ne!(timestamp_offset(SECRET, &pair), number(SECRET, 4).0);
    }
}
