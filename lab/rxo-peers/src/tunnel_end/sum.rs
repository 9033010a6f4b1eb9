//! The Internet checksum (RFC 1071).

use std::net::IpAddr;

/// A sum of 16-bit words, not folded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum(u64);

impl Sum {
    /// Adds the words of `bytes`. An odd byte at the end is the high half of a word.
    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        let words = bytes.chunks_exact(2);
        let odd = words.remainder().first().map_or(0, |&byte| u64::from(byte) << 8);
        let word = |word: &[u8]| u64::from(u16::from_be_bytes([word[0], word[1]]));
        Self(self.0 + words.map(word).sum::<u64>() + odd)
    }

    /// Adds one word.
    pub(super) fn word(self, word: u16) -> Self {
        Self(self.0 + u64::from(word))
    }

    /// Adds the pseudo-header of RFC 768 and RFC 8200.
    pub(super) fn pseudo(self, ends: [IpAddr; 2], protocol: u8, bytes: usize) -> Self {
        let addresses = ends.into_iter().fold(self, |sum, end| match end {
            IpAddr::V4(end) => sum.bytes(&end.octets()),
            IpAddr::V6(end) => sum.bytes(&end.octets()),
        });
        Self(addresses.0 + u64::from(protocol) + bytes as u64)
    }

    /// Folds the sum into one word: 0xffff if every checksum that it covers is right.
    pub(super) fn fold(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }
}
