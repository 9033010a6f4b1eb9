//! A GSO send that the device is to segment, and what to do if it refuses.
//!
//! Whether a device takes a GSO send is known only when it has it: a kernel without the feature, or an
//! interface that was changed, refuses. The sink then asks for the segments, in the middle of its batch,
//! and they are made where it asks. Afterwards the outbox segments before it sends, and tries the whole
//! again now and then.

use std::cell::OnceCell;
use std::num::NonZeroU16;

use rxo_frame::{ChecksumStatus, Frame, GsoKind, Instant};
use rxo_tcp::Text;
use rxo_wire::Offsets;
use rxo_wire::segmentation::parts;

use super::cut::Cutter;

/// One such send in a batch.
#[derive(Debug)]
pub(super) struct Large {
    kind: GsoKind,
    /// Where its headers are.
    at: Offsets,
    /// Text of every segment but the last, in bytes.
    size: NonZeroU16,
    /// Its segments one after the other, once the sink has asked for them.
    cut: OnceCell<Vec<u8>>,
}

/// Which kinds of GSO send the device refuses.
#[derive(Debug, Default)]
pub(super) struct Refused {
    /// How many more of IPv4 and of IPv6 are not worth trying.
    not_worth_trying: [u16; 2],
    /// GSO sends that were refused.
    pub(super) count: u64,
}

impl Large {
    pub(super) const fn new(kind: GsoKind, at: Offsets, size: NonZeroU16) -> Self {
        Self { kind, at, size, cut: OnceCell::new() }
    }

    /// How many segments it is.
    pub(super) fn segments(&self, text: Text<'_>) -> usize {
        parts(text.len(), self.size).len()
    }

    /// Its segments as frames.
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
        // A device that takes GSO sends completes checksums.
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
    /// Whether to give the next GSO send of this kind to the device whole.
    pub(super) fn is_worth_trying(&mut self, kind: GsoKind) -> bool {
        let left = &mut self.not_worth_trying[index(kind)];
        let is_worth_it = *left == 0;
        *left = left.saturating_sub(1);
        is_worth_it
    }

    /// Remembers those of `sent` that the device refused.
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

/// After so many GSO sends that were segmented here the device is asked again: one that was too much for
/// it once must not cost the gain for good, and a device that refuses all is asked seldom.
const TRY_AGAIN_AFTER: u16 = 1_000;
