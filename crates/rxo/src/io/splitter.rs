//! Splitter: the packets in a frame as they are on the network.

use rxo_frame::{ChecksumStatus, Frame, Gso, GsoKind, LinkKind};
use rxo_vnet::segments;
use rxo_wire::checksum::{Summer, complete};
use rxo_wire::segmentation::Checksums;

/// The length of the largest frame, in bytes: an IP packet with its Ethernet header and two VLAN tags.
const MOST_BYTES: usize = 65_535 + 22;

/// Splits GSO frames, and completes partial checksums. It is what [`PacketReader`](super::PacketReader) does, for a program
/// that receives frames itself, because it locks or waits between both steps.
#[derive(Debug)]
pub struct PacketSplitter {
    link: LinkKind,
    packet: Box<[u8]>,
    summer: Summer,
    /// `true` if GSO frames of TCP are not split.
    keeps_tcp: bool,
}

impl PacketSplitter {
    /// Creates a splitter of frames of `link`. Allocates 64 KiB for the packets that it makes.
    #[must_use]
    pub fn new(link: LinkKind) -> Self {
        let packet = vec![0; MOST_BYTES].into_boxed_slice();
        Self { link, packet, summer: Summer::detect(), keeps_tcp: false }
    }

    /// Passes GSO frames of TCP whole from now on, with a complete checksum.
    #[must_use]
    pub const fn keep_tcp(mut self) -> Self {
        self.keeps_tcp = true;
        self
    }

    /// Passes each packet in `frame` to `each`, in order. Returns `None` if the frame cannot be split, because its headers
    /// contradict its description; `each` may have had some packets then. The headers that are split are those that the
    /// description names: the inner ones of a tunnel's packet. Does not allocate.
    pub fn split<B: AsRef<[u8]>>(
        &mut self,
        frame: &Frame<B>,
        mut each: impl FnMut(&[u8]),
    ) -> Option<()> {
        let bytes = frame.bytes();
        let Some(gso) =
            frame.gso.filter(|gso| !(self.keeps_tcp && is_tcp(*gso) && is_partial(frame.checksum)))
        else {
            let ChecksumStatus::Partial { start, offset } = frame.checksum else {
                each(bytes);
                return Some(());
            };
            let (start, offset) = (usize::from(start), usize::from(offset));
            let sum = complete(bytes, start, offset, self.summer)?;
            let packet = self.packet.get_mut(..bytes.len())?;
            packet.copy_from_slice(bytes);
            packet.get_mut(start + offset..)?.get_mut(..2)?.copy_from_slice(&sum.to_be_bytes());
            each(packet);
            return Some(());
        };
        let described = (frame.checksum, gso);
        let checksums = Checksums::Complete(self.summer);
        let mut segments = segments(self.link, bytes, described, checksums).ok()?;
        while let Some(length) = segments.next_into(&mut self.packet).ok()? {
            each(&self.packet[..length]);
        }
        Some(())
    }
}

const fn is_partial(checksum: ChecksumStatus) -> bool {
    matches!(checksum, ChecksumStatus::Partial { .. })
}

const fn is_tcp(gso: Gso) -> bool {
    gso.tunnel.is_none() && matches!(gso.kind, GsoKind::TcpV4 | GsoKind::TcpV6)
}
