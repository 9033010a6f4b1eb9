//! Computes a CRC-32 over many short pieces.
//!
//! Pieces are gathered first, because the fast CRC instructions need more than a header at once.

/// The state of a CRC-32, and the pieces that are not processed yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Crc {
    hasher: crc32fast::Hasher,
    gathered: Vec<u8>,
}

/// The size of the buffer in bytes, which stays in the first-level cache. Longer pieces are processed directly.
const MOST_BYTES: usize = 8 * 1024;

impl Crc {
    /// Adds `bytes` to the data that the checksum covers.
    #[inline]
    pub(super) fn update(&mut self, bytes: &[u8]) {
        if self.gathered.len() + bytes.len() > MOST_BYTES {
            self.hasher.update(&self.gathered);
            self.gathered.clear();
        }
        if bytes.len() > MOST_BYTES / 8 {
            self.hasher.update(&self.gathered);
            self.gathered.clear();
            self.hasher.update(bytes);
        } else {
            self.gathered.extend_from_slice(bytes);
        }
    }

    /// Returns the checksum of all bytes that were added.
    pub(super) fn sum(mut self) -> u32 {
        self.hasher.update(&self.gathered);
        self.hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_bytes_are_cut_does_not_matter() {
        let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n.wrapping_mul(n) >> 3) as u8).collect();
        for length in [1, 7, 37, 1_000, 1_025, MOST_BYTES, MOST_BYTES + 1, 99_999] {
            let mut crc = Crc::default();
            bytes.chunks(length).for_each(|chunk| crc.update(chunk));
            assert_eq!(crc.sum(), crc32fast::hash(&bytes), "{length}");
        }
    }
}
