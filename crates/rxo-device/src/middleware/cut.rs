//! Segments GSO frames into frames as a network carries them.
//!
//! Separate from the middleware that uses it, because it makes no decisions.

use rxo_frame::{ChecksumStatus, Frame, Gso, GsoKind, LinkKind};
use rxo_wire::segmentation::{Checksums, Stated, segment_stated};
use rxo_wire::{parse, parse_ip};

/// Calls `give` with each segment of `frame` in order. `checksums` selects complete or partial checksums in the
/// segments; their other metadata is that of `frame`. Returns `false`, without a call of `give`, if `frame` is
/// not a TCP or UDP GSO frame with payload, in a tunnel or not, or if a segment would be longer than IP allows.
/// Allocates a buffer for one segment.
pub(super) fn cut(
    frame: Frame<&[u8]>,
    link: LinkKind,
    checksums: Checksums,
    mut give: impl FnMut(Frame<&[u8]>),
) -> bool {
    let Some(Gso { kind, size, .. }) = frame.gso else { return false };
    let parsed = link.read(frame.bytes, parse, parse_ip);
    let segments = stated(frame.checksum, kind)
        .zip(parsed.ok())
        .and_then(|(it, parsed)| segment_stated(frame.bytes, &parsed, it, size, checksums).ok());
    let Some(mut segments) = segments else { return false };
    let mut bytes = vec![0; segments.header_bytes() + usize::from(size.get())];
    let mut is_cut = false;
    while let Ok(Some(length)) = segments.next_into(&mut bytes) {
        give(Frame { bytes: &bytes[..length], gso: None, ..frame });
        is_cut = true;
    }
    is_cut
}

/// Returns the description of the headers by which a frame is segmented; in a tunnel these are the inner
/// headers. `None` if the kind cannot be segmented here.
fn stated(checksum: ChecksumStatus, kind: GsoKind) -> Option<Stated> {
    let (protocol, is_v6) = kind.segments().filter(|_| kind != GsoKind::UdpFragment)?;
    let transport = match checksum {
        ChecksumStatus::Partial { start, .. } => Some(start.into()),
        ChecksumStatus::Unknown | ChecksumStatus::Verified => None,
    };
    Some(Stated { protocol, is_v6, transport })
}
