//! Computes the largest share of packets that payloads and buffers permit to eliminate.
//!
//! PSH at the end of a payload ends an aggregate, and a segment is never split over two buffers. Both limits
//! follow from sizes alone. A lower share in a capture is due to windows, entries and the order of packets.

/// Returns the packets eliminated of 10,000 if every payload is cut into full segments and a remainder, and
/// these fill buffers of `buffer_bytes`.
pub(super) fn ceiling(payload_bytes: usize, buffer_bytes: usize) -> f64 {
    let segments = payload_bytes.div_ceil(SEGMENT_BYTES);
    let (mut buffers, mut room) = (0_usize, 0_usize);
    for segment in 0..segments {
        let bytes = (payload_bytes - segment * SEGMENT_BYTES).min(SEGMENT_BYTES);
        if bytes > room {
            buffers += 1;
            // A segment larger than the buffer stays alone.
            room = buffer_bytes.max(bytes);
        }
        room -= bytes;
    }
    if segments == 0 { 0.0 } else { (1.0 - buffers as f64 / segments as f64) * 10_000.0 }
}

/// Payload of a full segment without timestamps on an Ethernet of 1,500 bytes, as in the paper.
const SEGMENT_BYTES: usize = 1_460;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_payload_allows() {
        // According to the paper (section 5.1), 8 KB hold five full segments and a remainder of about 890
        // bytes.
        let rows = [(2, 0.5), (4, 1.0 / 3.0), (8, 1.0 / 6.0), (16, 0.25), (32, 5.0 / 23.0)];
        for (payload_kb, left) in rows {
            let most = ceiling(payload_kb * 1_024, 8_192);
            assert!((most - (1.0 - left) * 10_000.0).abs() < 1e-6, "{payload_kb} KB: {most}");
        }
        assert!((ceiling(65_536, 8_192) - 8_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_buffer_below_a_segment_takes_none_together() {
        assert!(ceiling(8_192, 1_024).abs() < 1e-9);
        assert!(ceiling(1_000, 8_192).abs() < 1e-9);
        assert!(ceiling(0, 8_192).abs() < 1e-9);
    }

    #[test]
    fn the_papers_4_kb_payload_fits_a_4_kb_buffer() {
        assert!((ceiling(4_096, 4_096) - ceiling(4_096, 8_192)).abs() < 1e-9);
    }
}
