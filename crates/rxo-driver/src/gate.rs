//! Gate: compares the description of a frame, which the kernel or a guest supplies, with the frame itself.
//!
//! This module is separate from the sources that use it, because the decision is the same for all sources.
//! Descriptions are not reliable: kernels describe a tunnel packet without its tunnel, some frames are longer
//! than their own headers can express, and a guest may supply any description.

use rxo_frame::{ChecksumStatus, Gso, LinkKind};
use rxo_vnet::{Invalid, admit};

/// Returns `metadata`, the checksum status and GSO metadata of `frame`, with faults corrected. `None` if the
/// frame must be discarded, because the description contradicts it: for example, the GSO kind matches neither
/// the frame nor a packet inside it. If the headers cannot be parsed, the description is returned unchanged.
/// This happens if the frame is longer than 64 KiB, or if its sender leaves the length in the IP header to the
/// device.
#[inline]
pub(crate) fn compared(
    link: LinkKind,
    frame: &[u8],
    metadata: (ChecksumStatus, Option<Gso>),
) -> Option<(ChecksumStatus, Option<Gso>)> {
    match admit(link, frame, metadata) {
        Ok(metadata) => Some(metadata),
        Err(Invalid::Headers) => Some(metadata),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtio_net::samples::{large, tcp};

    #[test]
    fn a_length_that_is_left_to_the_device_hides_nothing_that_could_be_compared() {
        let mut bytes = tcp(3_000);
        let frame = large(&bytes);
        let metadata = (frame.checksum, frame.gso);
        assert_eq!(compared(LinkKind::Ethernet, &bytes, metadata), Some(metadata));
        bytes[16..18].fill(0);
        assert_eq!(compared(LinkKind::Ethernet, &bytes, metadata), Some(metadata));
    }
}
