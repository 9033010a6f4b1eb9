//! A GSO frame that the device must segment, and the fallback if the device refuses the frame.
//!
//! A device may unexpectedly refuse a GSO frame: the kernel lacks the feature, or the interface was changed.
//! The sink then requests the segments in the middle of its batch, and they are created on request. Afterwards
//! the outbox splits GSO frames itself, and passes a whole frame to the device only occasionally, to test if
//! the device accepts it.

use std::cell::OnceCell;
use std::num::NonZeroU16;

use rxo_frame::{ChecksumStatus, Frame, GsoKind, Instant};
use rxo_tcp::Text;
use rxo_wire::Offsets;
use rxo_wire::segmentation::parts;

use super::cut::Cutter;

/// A GSO frame in a batch, with its segments if the sink has requested them.
#[derive(Debug)]
pub(super) struct Large {
    kind: GsoKind,
    /// The offsets of the GSO frame's headers.
    at: Offsets,
    /// Number of data bytes in every segment but the last.
    size: NonZeroU16,
    /// All segments of the GSO frame, concatenated; empty until the sink requests them.
    cut: OnceCell<Vec<u8>>,
}

/// A record of the GSO frames that the device has refused.
#[derive(Debug, Default)]
pub(super) struct Refused {
    /// For IPv4 and IPv6, the number of GSO frames that the host still splits itself before it passes a whole
    /// frame to the device again.
    not_worth_trying: [u16; 2],
    /// Number of GSO frames that the device refused.
    pub(super) count: u64,
}

impl Large {
    pub(super) const fn new(kind: GsoKind, at: Offsets, size: NonZeroU16) -> Self {
        Self { kind, at, size, cut: OnceCell::new() }
    }

    /// Returns the number of segments into which the GSO frame is split.
    pub(super) fn segments(&self, text: Text<'_>) -> usize {
        parts(text.len(), self.size).len()
    }

    /// Returns the segments as frames, created by the first call.
    pub(super) fn cut<'a>(
        &'a self,
        head: &[u8],
        text: Text<'_>,
        checksum: ChecksumStatus,
    ) -> impl Iterator<Item = Frame<&'a [u8]>> + use<'a> {
        let cut = self.cut.get_or_init(|| self.bytes(head, text));
        let frame = move |bytes| Frame { checksum, ..Frame::new(bytes, Instant::ZERO) };
        cut.chunks(head.len() + self.size()).map(frame)
    }

    fn bytes(&self, head: &[u8], mut text: Text<'_>) -> Vec<u8> {
        // A device that takes GSO sends also completes checksums.
        let Some(cutter) = Cutter::new(head, self.at, self.size, None) else { return Vec::new() };
        let parts = parts(text.len(), self.size);
        let mut bytes = Vec::with_capacity(parts.len() * (head.len() + self.size()));
        for part in parts {
            let own = text.split_to(part.bytes);
            cutter.append(part, own, &mut bytes);
            own.slices().for_each(|piece| bytes.extend_from_slice(piece));
        }
        bytes
    }

    fn size(&self) -> usize {
        self.size.get().into()
    }
}

impl Refused {
    /// Returns `true` if the next GSO frame of this kind should be passed to the device whole.
    pub(super) fn is_worth_trying(&mut self, kind: GsoKind) -> bool {
        let left = &mut self.not_worth_trying[index(kind)];
        let is_worth_it = *left == 0;
        *left = left.saturating_sub(1);
        is_worth_it
    }

    /// Records the GSO frames in `sent` that the device refused: the sink requested the segments of these
    /// frames.
    pub(super) fn remember(&mut self, sent: &[Large]) {
        for large in sent.iter().filter(|large| large.cut.get().is_some()) {
            self.not_worth_trying[index(large.kind)] = TRY_AGAIN_AFTER;
            self.count += 1;
        }
    }
}

const fn index(kind: GsoKind) -> usize {
    matches!(kind, GsoKind::TcpV6) as usize
}

/// Number of GSO frames that the host splits itself before it tries a whole frame on the device again. One
/// refusal must not disable GSO permanently, but attempts on a device that refuses all GSO frames must be rare.
const TRY_AGAIN_AFTER: u16 = 1_000;
