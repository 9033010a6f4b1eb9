//! An ACK template that the device must expand, and the fallback if the device refuses the template.
//!
//! A device may be replaced by a device that does not expand templates. The sink then requests the ACKs in the
//! middle of its batch, and they are created on request.

use std::cell::OnceCell;

use rxo_ack::expand_packed;
use rxo_frame::{ChecksumStatus, Frame, Instant, LinkKind};

/// An ACK template in a batch, with its ACKs if the sink has requested them.
#[derive(Debug)]
pub(super) struct Template {
    link: LinkKind,
    /// The length of each expanded ACK as a frame, in bytes.
    frame_bytes: usize,
    count: usize,
    /// All ACKs of the template, concatenated; empty until the sink requests them.
    expanded: OnceCell<Vec<u8>>,
}

impl Template {
    /// Creates a template of `count` ACKs, which expand to frames of `frame_bytes` bytes each.
    pub(super) const fn new(link: LinkKind, frame_bytes: usize, count: usize) -> Self {
        Self { link, frame_bytes, count, expanded: OnceCell::new() }
    }

    /// Returns the number of ACKs that the template expands to.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Returns the ACKs of this template as frames, expanded by the first call. `packed` are the bytes of the
    /// template.
    pub(super) fn frames<'a>(
        &'a self,
        packed: &[u8],
        checksum: ChecksumStatus,
    ) -> impl Iterator<Item = Frame<&'a [u8]>> + use<'a> {
        let frame = move |bytes| Frame { checksum, ..Frame::new(bytes, Instant::ZERO) };
        let expanded = self.expanded.get_or_init(|| {
            let mut bytes = Vec::with_capacity(self.count * self.frame_bytes);
            let packed = Frame { checksum, ..Frame::new(packed, Instant::ZERO) };
            // Cannot fail: the outbox wrote these bytes as a template.
            let _count =
                expand_packed(packed, self.link, &mut |ack| bytes.extend_from_slice(ack.bytes));
            bytes
        });
        expanded.chunks(self.frame_bytes).map(frame)
    }
}
