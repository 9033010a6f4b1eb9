//! A large send that the device is to cut into segments, and what to do when it refuses.
//!
//! Whether a device takes a large send is known only when it has it: a kernel without the feature, or an
//! interface that was changed, refuses. The sink then asks for the segments, in the middle of its batch;
//! so they are cut where it asks. Afterwards the outbox cuts before it sends, and tries again now and then.

use std::cell::OnceCell;
use std::num::NonZeroU16;

use rxo_frame::{ChecksumStatus, Frame, GsoKind, Instant};

use super::cut::{Cutter, Part, take};

/// One such send in a batch.
#[derive(Debug)]
pub(super) struct Large {
    kind: GsoKind,
    /// Where in its headers IP begins, and where TCP.
    places: [usize; 2],
    /// Text of every segment but the last, in bytes.
    size: NonZeroU16,
    /// Its segments one after the other, once the sink has asked for them.
    cut: OnceCell<Vec<u8>>,
}

/// Which kinds of large send the device refuses.
#[derive(Debug, Default)]
pub(super) struct Refused {
    /// How many more of IPv4 and of IPv6 are not worth trying.
    not_worth_trying: [u16; 2],
    /// Large sends that were refused.
    pub(super) count: u64,
}

impl Large {
    pub(super) const fn new(kind: GsoKind, places: [usize; 2], size: NonZeroU16) -> Self {
        Self { kind, places, size, cut: OnceCell::new() }
    }

    /// How many segments it is.
    pub(super) fn segments(&self, text: [&[u8]; 2]) -> usize {
        (text[0].len() + text[1].len()).div_ceil(self.size())
    }

    /// Its segments as frames.
    pub(super) fn cut<'a>(
        &'a self,
        head: &[u8],
        text: [&[u8]; 2],
        checksum: ChecksumStatus,
    ) -> impl Iterator<Item = Frame<&'a [u8]>> + use<'a> {
        let cut = self.cut.get_or_init(|| self.bytes(head, text));
        let frame = move |bytes| Frame { checksum, ..Frame::new(bytes, Instant::ZERO) };
        cut.chunks(head.len() + self.size()).map(frame)
    }

    fn bytes(&self, head: &[u8], mut text: [&[u8]; 2]) -> Vec<u8> {
        // A device that takes large sends completes checksums.
        let Some(cutter) = Cutter::new(head, self.places, self.size(), None) else {
            return Vec::new();
        };
        let segments = self.segments(text);
        let mut bytes = Vec::with_capacity(segments * (head.len() + self.size()));
        for index in 0..segments {
            let part = Part::new(index, self.size(), segments);
            let own = take(&mut text, self.size());
            cutter.append(part, own, &mut bytes);
            own.iter().for_each(|piece| bytes.extend_from_slice(piece));
        }
        bytes
    }

    fn size(&self) -> usize {
        self.size.get().into()
    }
}

impl Refused {
    /// Whether the next large send of this kind is to be given to the device whole.
    pub(super) fn is_worth_trying(&mut self, kind: GsoKind) -> bool {
        let left = &mut self.not_worth_trying[index(kind)];
        let is_worth_it = *left == 0;
        *left = left.saturating_sub(1);
        is_worth_it
    }

    /// Remembers those that the device has asked the segments of.
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

/// After so many large sends that were cut here the device is asked again: one that was too much for it
/// once must not cost the gain for good, and one that refuses all is asked seldom.
const TRY_AGAIN_AFTER: u16 = 1_000;
