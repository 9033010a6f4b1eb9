//! The source of a direction, and the batch that was taken from it.
//!
//! A batch has as many frames as is configured, or fewer if they are GSO frames ([`RecentFrames`]).

use rxo_device::{DeviceError, FrameSource, RecentFrames};
use rxo_frame::Frame;

/// A source and its last batch.
pub(super) struct Inlet<S: FrameSource> {
    pub(super) source: S,
    pub(super) batch: Vec<Frame<S::Buffer>>,
    pub(super) taken: Taken,
    most_frames: usize,
    recent: RecentFrames,
}

/// What a turn took from a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) frames: usize,
    /// As many as it asked for, so there are probably more.
    pub(super) is_full: bool,
    /// GSO frames come, whose segments have gathered before.
    pub(super) has_gathered: bool,
}

impl Taken {
    /// What was taken from this source and from the other.
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            frames: self.frames + other.frames,
            is_full: self.is_full || other.is_full,
            has_gathered: self.has_gathered || other.has_gathered,
        }
    }
}

impl<S: FrameSource> Inlet<S> {
    /// Batches have at most `most_frames`. Allocates room for them.
    pub(super) fn new(source: S, most_frames: usize) -> Self {
        let recent = RecentFrames::new(source.capabilities().mtu);
        let batch = Vec::with_capacity(most_frames);
        Self { source, batch, taken: Taken::default(), most_frames, recent }
    }

    /// Takes a batch. If `may_read` is false, the source is only attended. Without `is_worth_a_look` it gives
    /// only frames that it has delayed.
    ///
    /// # Errors
    /// If the source failed. What was received before that is in the batch.
    pub(super) fn take(
        &mut self,
        is_worth_a_look: bool,
        may_read: bool,
    ) -> Result<(), DeviceError> {
        self.taken = Taken::default();
        if !may_read || !(is_worth_a_look || self.source.poll_at().is_some()) {
            self.source.attend();
            return Ok(());
        }
        let most = self.recent.batch_frames(self.most_frames);
        let received = self.source.receive(&mut self.batch, most);
        if let Some(first) = self.batch.first() {
            self.recent.came(first);
        }
        let frames = self.batch.len();
        let has_gathered = self.recent.has_gso();
        self.taken = Taken { frames, is_full: frames >= most, has_gathered };
        received.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use rxo_device::{MemoryLink, MemoryOptions};
    use rxo_frame::{Gso, GsoKind, Instant};

    use super::*;

    #[test]
    fn gso_frames_come_in_small_batches_without_a_pause() {
        let link = MemoryLink::new(MemoryOptions::default());
        let mut inlet = Inlet::new(link.source(), 64);
        let mut take = |frame: &Frame<Vec<u8>>, count: usize| {
            (0..count).for_each(|_| link.push(frame));
            inlet.batch.clear();
            inlet.take(true, true).unwrap();
            inlet.taken
        };
        let taken = |frames, is_full, has_gathered| Taken { frames, is_full, has_gathered };
        let segment = Frame::new(vec![0; 1_514], Instant::ZERO);
        assert_eq!(take(&segment, 10), taken(10, false, false));
        assert_eq!(take(&segment, 70), taken(64, true, false));
        assert_eq!(take(&segment, 0), taken(6, false, false));
        let size = NonZeroU16::new(1_448).unwrap();
        let gso = Some(Gso { kind: GsoKind::TcpV4, ecn: false, size });
        let gso_frame = Frame { gso, ..Frame::new(vec![0; 60_000], Instant::ZERO) };
        (0..100).for_each(|_| _ = take(&gso_frame, 1));
        assert_eq!(take(&gso_frame, 1), taken(1, false, true));
        assert_eq!(take(&gso_frame, 10), taken(2, true, true));
    }
}
