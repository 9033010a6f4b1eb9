//! ACKs that the device is to expand, and what to do if it refuses.
//!
//! A device may be replaced by one that does not expand templates. The sink then asks for the ACKs, in
//! the middle of its batch, and they are made where it asks.

use std::cell::OnceCell;

use rxo_ack::expand_packed;
use rxo_frame::{ChecksumStatus, Frame, Instant, LinkKind};

/// One template in a batch.
#[derive(Debug)]
pub(super) struct Template {
    link: LinkKind,
    /// The length of each ACK as a frame, in bytes.
    frame_bytes: usize,
    count: usize,
    /// Its ACKs one after the other, once the sink has asked for them.
    expanded: OnceCell<Vec<u8>>,
}

impl Template {
    /// A template of `count` ACKs, which are frames of `frame_bytes` each.
    pub(super) const fn new(link: LinkKind, frame_bytes: usize, count: usize) -> Self {
        Self { link, frame_bytes, count, expanded: OnceCell::new() }
    }

    /// The number of its ACKs.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// The ACKs of `packed`, which is this template, as frames.
    pub(super) fn frames<'a>(
        &'a self,
        packed: &[u8],
        checksum: ChecksumStatus,
    ) -> impl Iterator<Item = Frame<&'a [u8]>> + use<'a> {
        let frame = move |bytes| Frame { checksum, ..Frame::new(bytes, Instant::ZERO) };
        let expanded = self.expanded.get_or_init(|| {
            let mut bytes = Vec::with_capacity(self.count * self.frame_bytes);
            let packed = Frame { checksum, ..Frame::new(packed, Instant::ZERO) };
            // What the outbox has packed is a template.
            let _count =
                expand_packed(packed, self.link, &mut |ack| bytes.extend_from_slice(ack.bytes));
            bytes
        });
        expanded.chunks(self.frame_bytes).map(frame)
    }
}
