//! The initial window.
//!
//! A configured number of segments may be more than RFC 6928 permits, but no larger a burst: what is more is paced, like what
//! leaves after idle time.

use crate::InitialWindow;

impl InitialWindow {
    /// In bytes, with segments of `mss` bytes.
    pub(super) fn bytes(self, mss: u32) -> u32 {
        match self {
            Self::Rfc6928 => at_once(mss),
            Self::Segments(segments) => u32::from(segments) * mss,
        }
    }
}

/// How many bytes may leave at once before acknowledgements pace what leaves: ten segments, at most 14,600 bytes or two
/// segments (RFC 6928, section 2).
pub(super) fn at_once(mss: u32) -> u32 {
    (10 * mss).min((2 * mss).max(14_600))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6928, section 2 (a).
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
