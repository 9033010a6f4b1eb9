//! Cuts GSO frames that no device divides: those of tunnels.
//!
//! Separate from the transmitter because it decides nothing. Contract: its memory is allocated with the first such
//! frame and stays; a sink that meets none has none.

use rxo_frame::{Frame, Gather, Instant, LinkKind};
use rxo_vnet::segments;
use rxo_wire::checksum::Summer;
use rxo_wire::segmentation::Checksums;

/// Memory for one GSO frame and one segment of it.
#[derive(Debug)]
pub(super) struct Cutter {
    whole: Vec<u8>,
    segment: Vec<u8>,
    summer: Summer,
}

impl Cutter {
    pub(super) fn new() -> Self {
        Self { whole: Vec::new(), segment: Vec::new(), summer: Summer::detect() }
    }

    /// Gives the segments of a GSO frame in order, with partial checksums if it has one. Returns `false`, and gives
    /// nothing, if it cannot be segmented.
    pub(super) fn cut<'a>(
        &mut self,
        packet: impl Gather<'a>,
        link: LinkKind,
        mut give: impl FnMut(Frame<&[u8]>),
    ) -> bool {
        let Self { whole, segment, summer } = self;
        let (offload, vlan) = (packet.offload(), packet.vlan());
        let Some(gso) = offload.gso else { return false };
        whole.clear();
        packet.for_each_slice(|piece| whole.extend_from_slice(piece));
        let checksum = offload.checksum;
        let checksums =
            if checksum.is_partial() { Checksums::Partial } else { Checksums::Complete(*summer) };
        let Ok(mut segments) = segments(link, whole, (checksum, gso), checksums) else {
            return false;
        };
        segment.resize(segments.header_bytes() + usize::from(gso.size.get()), 0);
        let mut is_cut = false;
        while let Ok(Some(bytes)) = segments.next_into(segment) {
            let bytes = &segment[..bytes];
            give(Frame { checksum, vlan, ..Frame::new(bytes, Instant::ZERO) });
            is_cut = true;
        }
        is_cut
    }
}
