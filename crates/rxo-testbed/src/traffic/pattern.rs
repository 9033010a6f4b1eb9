//! The contents of a test connection: a stream of bytes that costs nothing to generate and little to check.
//!
//! All streams are parts of one block of pseudo-random bytes that repeats every [`PERIOD`] bytes. Each
//! connection starts at its own offset in the block. The period is a prime, so if whole segments are lost,
//! repeated or swapped, the received bytes differ from the expected bytes of the block. Comparing a received
//! stream with the block finds every wrong byte and its position, costs less than a good hash, and costs the
//! same on every path that is compared.

use std::fmt;
use std::sync::OnceLock;

/// The byte stream of one connection, identified by its client's port. Copying this value is cheap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    start: u64,
}

/// The first wrong byte of a received stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The client's port, which identifies the connection of the stream.
    pub port: u16,
    /// The offset of the wrong byte in the stream, from 0.
    pub offset: u64,
    /// The byte that was sent at this offset.
    pub expected: u8,
    /// The byte that was received at this offset.
    pub received: u8,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { port, offset, expected, received } = self;
        write!(
            f,
            "the connection from port {port} got {received:#04x} instead of {expected:#04x} at byte {offset}"
        )
    }
}

impl Pattern {
    /// The maximum length of a slice that [`Pattern::bytes`] returns, in bytes.
    pub const LONGEST: usize = 128 * 1024;

    /// Returns the byte stream of the connection whose client has the port `port`.
    #[must_use]
    pub fn of_port(port: u16) -> Self {
        Self { start: mix(u64::from(port)) % PERIOD as u64 }
    }

    /// Returns the `length` bytes of the stream at `offset`; at most [`Pattern::LONGEST`].
    #[must_use]
    pub fn bytes(self, offset: u64, length: usize) -> &'static [u8] {
        let from = ((self.start + offset % PERIOD as u64) % PERIOD as u64) as usize;
        &block()[from..from + length.min(Self::LONGEST)]
    }

    /// Returns the first `length` bytes of the stream as a vector, to be used as the contents of a file.
    #[must_use]
    pub fn file(self, length: usize) -> Vec<u8> {
        let parts = (0..length).step_by(Self::LONGEST);
        parts.flat_map(|at| self.bytes(at as u64, length - at)).copied().collect()
    }

    /// Compares `received`, which arrived at `offset` of the stream, with the bytes that were sent.
    ///
    /// # Errors
    /// The index in `received` of the first wrong byte, and the byte that was sent.
    pub fn check(self, offset: u64, received: &[u8]) -> Result<(), (usize, u8)> {
        for (index, part) in received.chunks(Self::LONGEST).enumerate() {
            let skipped = index * Self::LONGEST;
            let expected = self.bytes(offset + skipped as u64, part.len());
            if part != expected {
                let same = part.iter().zip(expected).take_while(|(a, b)| a == b).count();
                return Err((skipped + same, expected[same]));
            }
        }
        Ok(())
    }
}

/// Returns one period of the pseudo-random block, followed by enough of the next period for the longest slice.
fn block() -> &'static [u8] {
    static BLOCK: OnceLock<Box<[u8]>> = OnceLock::new();
    BLOCK.get_or_init(|| {
        let once: Vec<u8> = (0..PERIOD as u64).map(|place| mix(place) as u8).collect();
        once.iter().copied().cycle().take(PERIOD + Pattern::LONGEST).collect()
    })
}

/// Returns a hash of `value` over 64 bits (the finalizer of SplitMix64, Steele et al. 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// The number of bytes after which the stream repeats. The number is below 64 KiB, so that one period stays in
/// a core's own cache. It is a prime, so that it is no multiple of a usual length of reads or segments.
const PERIOD: usize = 65_521;

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(port: u16, length: u64) -> Vec<u8> {
        (0..length).map(|at| Pattern::of_port(port).bytes(at, 1)[0]).collect()
    }

    #[test]
    fn slices_are_windows_on_one_stream() {
        let bytes = stream(40_000, 200_000);
        let pattern = Pattern::of_port(40_000);
        for (offset, length) in [(0, 1), (65_520, 3), (65_521, Pattern::LONGEST), (1448, 65_160)] {
            assert_eq!(pattern.bytes(offset as u64, length), &bytes[offset..offset + length]);
        }
    }

    #[test]
    fn a_file_is_the_beginning_of_the_stream() {
        let pattern = Pattern::of_port(3);
        for length in [0, 1, Pattern::LONGEST, Pattern::LONGEST + 1, 300_000] {
            let file = pattern.file(length);
            assert_eq!((file.len(), pattern.check(0, &file)), (length, Ok(())));
        }
    }

    #[test]
    fn what_was_sent_passes_whatever_the_reads() {
        let bytes = stream(1, 400_000);
        assert_eq!(Pattern::of_port(1).check(0, &bytes), Ok(()));
        assert_eq!(Pattern::of_port(1).check(70_000, &bytes[70_000..70_001]), Ok(()));
    }

    #[test]
    fn one_wrong_bit_anywhere_is_found_and_located() {
        let good = stream(7, 300_000);
        for place in [0, 1, 65_520, 131_071, 131_072, 299_999] {
            let mut bad = good.clone();
            bad[place] ^= 0x10;
            assert_eq!(Pattern::of_port(7).check(0, &bad), Err((place, good[place])));
        }
    }

    #[test]
    fn lost_doubled_and_exchanged_segments_are_found() {
        let good = stream(9, 65_521 * 3);
        let pattern = Pattern::of_port(9);
        for segments in 1..100 {
            assert!(pattern.check(0, &good[segments * 1448..][..1448]).is_err(), "{segments} lost");
        }
        assert!(pattern.check(1448, &good[..1448]).is_err(), "doubled");
    }

    #[test]
    fn connections_do_not_send_the_same() {
        let bytes = stream(50_000, 1000);
        let others =
            (50_001..50_400).filter(|&port| Pattern::of_port(port).check(0, &bytes).is_ok());
        assert_eq!(others.count(), 0);
    }
}
