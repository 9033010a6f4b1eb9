//! How large the frames of a device have been lately, and so how many of them are a batch.

use std::sync::atomic::{AtomicU32, Ordering};

use rxo_frame::Frame;

/// How large the frames of a source have been lately.
///
/// A source that copies puts each GSO frame into a buffer of 64 KiB. A whole batch of them is many megabytes: when
/// the last was copied, the first has left the caches. So a batch is as many as a cache holds. Frames of one segment
/// gather in a pause; the segments of a GSO frame have gathered before.
#[derive(Debug)]
pub(crate) struct RecentFrames {
    mtu: u32,
    bytes: AtomicU32,
}

impl RecentFrames {
    /// Of a source whose largest packet on the wire has `mtu` bytes. None has come.
    pub(crate) const fn new(mtu: u32) -> Self {
        Self { mtu, bytes: AtomicU32::new(mtu) }
    }

    /// `frame` has come, by itself or with others like it. Only one thread may say so.
    #[inline]
    pub(crate) fn came<B: AsRef<[u8]>>(&self, frame: &Frame<B>) {
        // With its link's header a frame is longer than the MTU, so its length alone does not tell.
        let bytes = frame.gso.map_or(0, |_| frame.bytes().len() as u32);
        let bytes = bytes.min(LARGEST_FRAME_BYTES).max(self.mtu);
        let before = self.bytes();
        if bytes != before {
            // Rounded away from `before`, so that frames that are all alike are soon the measure.
            let step = bytes.abs_diff(before).div_ceil(8);
            let now = if bytes > before { before + step } else { before - step };
            self.bytes.store(now, Ordering::Relaxed);
        }
    }

    /// Bytes of a frame as they came lately, from the MTU to 65,536.
    pub(crate) fn bytes(&self) -> u32 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether GSO frames come.
    pub(crate) fn has_gso(&self) -> bool {
        self.bytes() > self.mtu
    }

    /// How many frames are a batch: `most`, or as many as a cache holds if GSO frames come; at least one if `most` is.
    pub(crate) fn batch_frames(&self, most: usize) -> usize {
        if self.has_gso() { most.min((BATCH_BYTES / self.bytes()).max(1) as usize) } else { most }
    }
}

/// Two of the largest frames: half of the second level of cache of small processors.
const BATCH_BYTES: u32 = 128 << 10;
/// Of an IP packet.
const LARGEST_FRAME_BYTES: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use rxo_frame::{Gso, GsoKind, Instant};

    use super::*;

    fn frame(bytes: usize) -> Frame<Vec<u8>> {
        Frame::new(vec![0; bytes], Instant::ZERO)
    }

    fn gso_frame(bytes: usize) -> Frame<Vec<u8>> {
        let size = NonZeroU16::new(1_448).unwrap();
        Frame { gso: Some(Gso::new(GsoKind::TcpV4, size)), ..frame(bytes) }
    }

    #[test]
    fn a_batch_of_gso_frames_fits_a_cache() {
        let recent = RecentFrames::new(1_500);
        assert_eq!(recent.batch_frames(256), 256);
        (0..100).for_each(|_| recent.came(&gso_frame(1 << 16)));
        assert_eq!((recent.batch_frames(256), recent.batch_frames(1)), (2, 1));
        (0..100).for_each(|_| recent.came(&frame(66)));
        assert_eq!(recent.batch_frames(256), 256);
    }

    #[test]
    fn a_full_frame_with_the_header_of_its_link_is_no_gso_frame() {
        let recent = RecentFrames::new(1_500);
        (0..100).for_each(|_| recent.came(&frame(1_518)));
        assert!(!recent.has_gso());
    }

    #[test]
    fn the_largest_is_bounded() {
        let recent = RecentFrames::new(1_500);
        (0..100).for_each(|_| recent.came(&gso_frame((1 << 16) + 14)));
        assert_eq!((recent.bytes(), recent.batch_frames(0)), (1 << 16, 0));
    }
}
