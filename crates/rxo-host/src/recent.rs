//! Measures the recent frame size of a device, which determines the number of frames in a batch, and the
//! windows for GSO frames (`queue.rs`).

use std::sync::atomic::{AtomicU32, Ordering};

use rxo_frame::Frame;

/// The recent frame size of a source, as a moving average.
///
/// A source that copies frames puts each GSO frame into a buffer of 64 KiB. A whole batch of GSO frames has
/// many megabytes: when the last frame has been copied, the first frame is no longer in the CPU caches. So a
/// batch of GSO frames is limited to the size of a cache. Small batches of GSO frames cost little, because each
/// frame already contains many segments.
#[derive(Debug)]
pub(crate) struct RecentFrames {
    mtu: u32,
    bytes: AtomicU32,
    /// 64 times the mean size of about the last 64 frames, in bytes, so that a few small frames change the
    /// mean little.
    sum_bytes: AtomicU32,
}

impl RecentFrames {
    /// Creates a measurement that starts with frames of `mtu` bytes, the largest packet on the wire.
    pub(crate) const fn new(mtu: u32) -> Self {
        let mtu = if mtu < LARGEST_FRAME_BYTES { mtu } else { LARGEST_FRAME_BYTES };
        Self { mtu, bytes: AtomicU32::new(mtu), sum_bytes: AtomicU32::new(mtu * MEAN_FRAMES) }
    }

    /// Records a received frame, or one of several frames of equal size. Only one thread may call this
    /// function.
    #[inline]
    pub(crate) fn record<B: AsRef<[u8]>>(&self, frame: &Frame<B>) {
        // With its link header even a single segment is longer than the MTU, so length alone does not
        // identify a GSO frame.
        let bytes = frame.gso.map_or(0, |_| frame.bytes().len() as u32);
        let bytes = bytes.min(LARGEST_FRAME_BYTES).max(self.mtu);
        let sum = self.sum_bytes.load(Ordering::Relaxed);
        self.sum_bytes.store(sum - sum / MEAN_FRAMES + bytes, Ordering::Relaxed);
        let before = self.bytes();
        if bytes != before {
            // Rounded up, so that the average reaches the size of frames that are all equal.
            let step = bytes.abs_diff(before).div_ceil(8);
            let now = if bytes > before { before + step } else { before - step };
            self.bytes.store(now, Ordering::Relaxed);
        }
    }

    /// Returns the recent frame size, from the MTU to 65,536 bytes.
    pub(crate) fn bytes(&self) -> u32 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the mean size of the last frames. The mean follows a change more slowly than
    /// [`RecentFrames::bytes`].
    pub(crate) fn mean_bytes(&self) -> u32 {
        self.sum_bytes.load(Ordering::Relaxed) / MEAN_FRAMES
    }

    /// Returns `true` if the device has recently delivered GSO frames.
    pub(crate) fn has_gso(&self) -> bool {
        self.bytes() > self.mtu
    }

    /// Returns the number of frames in a batch: `most`, or, with GSO frames, as many as fit into a cache, but
    /// at least one if `most` is not zero.
    pub(crate) fn batch_frames(&self, most: usize) -> usize {
        if self.has_gso() { most.min((BATCH_BYTES / self.bytes()).max(1) as usize) } else { most }
    }
}

/// The maximum size of a batch of GSO frames in bytes: two of the largest frames, half of a small processor's
/// L2 cache.
const BATCH_BYTES: u32 = 128 << 10;
/// The number of frames that the mean covers.
const MEAN_FRAMES: u32 = 64;
/// The maximum size of an IP packet, in bytes.
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
        (0..100).for_each(|_| recent.record(&gso_frame(1 << 16)));
        assert_eq!((recent.batch_frames(256), recent.batch_frames(1)), (2, 1));
        (0..100).for_each(|_| recent.record(&frame(66)));
        assert_eq!(recent.batch_frames(256), 256);
    }

    #[test]
    fn a_full_frame_with_the_header_of_its_link_is_no_gso_frame() {
        let recent = RecentFrames::new(1_500);
        (0..100).for_each(|_| recent.record(&frame(1_518)));
        assert!(!recent.has_gso());
    }

    #[test]
    fn the_largest_is_bounded() {
        let recent = RecentFrames::new(1_500);
        (0..100).for_each(|_| recent.record(&gso_frame((1 << 16) + 14)));
        assert_eq!((recent.bytes(), recent.batch_frames(0)), (1 << 16, 0));
    }
}
