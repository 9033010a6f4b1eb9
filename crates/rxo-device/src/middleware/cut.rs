//! Segments GSO frames, as a network carries them.
//!
//! Separate from the middleware that uses it, because it decides nothing.

use rxo_frame::{Frame, Gso, GsoKind, LinkKind};
use rxo_wire::segmentation::{Checksums, segment};
use rxo_wire::{Parsed, Transport, parse, parse_ip};

/// Gives the segments of `frame` in order, with `checksums`. Their metadata is that of `frame`. Returns
/// `false`, and gives nothing, if `frame` is not a GSO frame of TCP or UDP with payload, or a segment of it would
/// be longer than IP allows. Allocates room for one segment.
pub(super) fn cut(
    frame: Frame<&[u8]>,
    link: LinkKind,
    checksums: Checksums,
    mut give: impl FnMut(Frame<&[u8]>),
) -> bool {
    let Some(Gso { kind, size, .. }) = frame.gso else { return false };
    let parsed = match link {
        LinkKind::Ethernet => parse(frame.bytes),
        LinkKind::RawIp => parse_ip(frame.bytes),
    };
    let segments = parsed
        .ok()
        .filter(|parsed| is_of_kind(parsed, kind))
        .and_then(|parsed| segment(frame.bytes, &parsed, size, checksums).ok());
    let Some(mut segments) = segments else { return false };
    let mut bytes = vec![0; segments.header_bytes() + usize::from(size.get())];
    let mut is_cut = false;
    while let Ok(Some(length)) = segments.next_into(&mut bytes) {
        give(Frame { bytes: &bytes[..length], gso: None, ..frame });
        is_cut = true;
    }
    is_cut
}

/// Whether the packet is what its owner says: a TCP segment must not be cut as datagrams, or the reverse.
const fn is_of_kind(parsed: &Parsed, kind: GsoKind) -> bool {
    match kind {
        GsoKind::TcpV4 | GsoKind::TcpV6 => matches!(parsed.transport, Transport::Tcp(_)),
        GsoKind::Udp => matches!(parsed.transport, Transport::Udp(_)),
        GsoKind::UdpFragment | GsoKind::AckTemplate => false,
    }
}
