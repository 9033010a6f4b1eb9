//! Computes the initial congestion window.
//!
//! A configured window may exceed RFC 6928, but the first burst may not: the part above the limit is paced,
//! like data after idle time.

use crate::InitialWindow;

impl InitialWindow {
    /// Returns the initial window in bytes, with full segments of `mss` bytes.
    pub(super) fn bytes(self, mss: u32) -> u32 {
        match self {
            Self::Rfc6928 => at_once(mss),
            Self::Segments(segments) => u32::from(segments) * mss,
        }
    }
}

/// Returns the number of bytes that may be sent at once before ACKs arrive: ten segments, but at
/// most 14,600 bytes or two segments, whichever is more (RFC 6928, section 2).
pub(super) fn at_once(mss: u32) -> u32 {
    (10 * mss).min((2 * mss).max(14_600))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The initial window is ten segments on Ethernet, limited in bytes (RFC 6928, section 2 (a)).
    #[test]
    fn the_initial_window_is_ten_segments_of_an_ethernet() {
        let bytes = |mss| InitialWindow::Rfc6928.bytes(mss);
        assert_eq!([536, 1_460, 8_960].map(bytes), [5_360, 14_600, 17_920]);
    }

    #[test]
    fn or_as_many_as_configured() {
        assert_eq!(InitialWindow::Segments(10).bytes(8_960), 89_600);
        assert_eq!(InitialWindow::Segments(64).bytes(65_535), 64 * 65_535);
    }
}
