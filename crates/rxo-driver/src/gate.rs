//! What the kernel says of a frame, compared with the frame.
//!
//! Separate from the sources that ask it, because it is one decision: the kernel is honest, but it forgets tunnels, and
//! some of its frames are longer than their own headers can say.

use rxo_frame::{ChecksumStatus, Gso, LinkKind};
use rxo_vnet::{Invalid, admit};

/// What is true of `frame` of what was said. `None` if the frame cannot be carried: it is a GSO frame of a kind that it
/// neither is nor contains. A frame whose headers cannot be read (longer than 64 KiB, say) stays as it is described.
#[inline]
pub(crate) fn compared(
    link: LinkKind,
    frame: &[u8],
    said: (ChecksumStatus, Option<Gso>),
) -> Option<(ChecksumStatus, Option<Gso>)> {
    match admit(link, frame, said) {
        Ok(said) => Some(said),
        Err(Invalid::Headers) => Some(said),
        Err(_) => None,
    }
}
