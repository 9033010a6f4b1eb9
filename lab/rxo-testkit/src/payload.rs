//! Payload in which every byte depends on its stream and position.
//!
//! If segments are swapped, padding is taken for data, or a segment is delivered twice, bytes are at wrong
//! positions and the comparison fails. A plain counter would hide a shift by
//! 256.

use crate::random::mix;

/// Returns the byte at sequence number `seq` of stream `stream`.
#[must_use]
pub fn stream_byte(stream: u32, seq: u32) -> u8 {
    word(stream, seq)[(seq % 8) as usize]
}

/// Appends `len` bytes of `stream` from sequence number `seq`.
pub(crate) fn append(out: &mut Vec<u8>, stream: u32, seq: u32, len: usize) {
    let end = out.len() + len;
    let mut at = seq;
    while out.len() < end {
        let within = (at % 8) as usize;
        let take = (8 - within).min(end - out.len());
        out.extend_from_slice(&word(stream, at)[within..within + take]);
        at = at.wrapping_add(take as u32);
    }
}

fn word(stream: u32, seq: u32) -> [u8; 8] {
    mix(u64::from(stream) << 32 | u64::from(seq / 8)).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::{append, stream_byte};

    #[test]
    fn a_segment_shows_the_bytes_of_its_place_across_the_wrap() {
        let seq = 0xffff_fff3;
        let mut bytes = Vec::new();
        append(&mut bytes, 7, seq, 41);
        let expected: Vec<u8> = (0..41).map(|i| stream_byte(7, seq.wrapping_add(i))).collect();
        assert_eq!(bytes, expected);
    }
}
