//! What the kernel or a guest says of a frame, compared with the frame.
//!
//! Separate from the sources that ask it, because it is one decision for all: kernels forget tunnels, some of their
//! frames are longer than their own headers can say, and a guest says what it likes.

use rxo_frame::{ChecksumStatus, Gso, LinkKind};
use rxo_vnet::{Invalid, admit};

/// What is true of `frame` of what was said. `None` if the frame cannot be carried: it is a GSO frame of a kind that it
/// neither is nor contains. A frame whose headers cannot be read stays as it is described: it is longer than 64 KiB, say, or
/// its sender leaves the length in the IP header to the device.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtio_net::samples::{large, tcp};

    #[test]
    fn a_length_that_is_left_to_the_device_hides_nothing_that_could_be_compared() {
        let mut bytes = tcp(3_000);
        let frame = large(&bytes);
        let said = (frame.checksum, frame.gso);
        assert_eq!(compared(LinkKind::Ethernet, &bytes, said), Some(said));
        bytes[16..18].fill(0);
        assert_eq!(compared(LinkKind::Ethernet, &bytes, said), Some(said));
    }
}
