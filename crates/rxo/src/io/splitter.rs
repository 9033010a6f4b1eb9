//! Splitter: turns a frame into packets in the form that they have on the network.

use rxo_frame::{ChecksumStatus, Frame, Gso, GsoKind, LinkKind};
use rxo_vnet::segments;
use rxo_wire::checksum::{Summer, complete};
use rxo_wire::segmentation::Checksums;

/// The length of the largest frame, in bytes: an IP packet with its Ethernet header and two VLAN tags.
const MOST_BYTES: usize = 65_535 + 22;

/// Splits GSO frames, and completes partial checksums, as [`PacketReader`](super::PacketReader) does. For a
/// program that receives frames itself, for example because it locks or waits between receiving and splitting.
#[derive(Debug)]
pub struct PacketSplitter {
    link: LinkKind,
    packet: Box<[u8]>,
    summer: Summer,
    /// `true` if GSO frames of TCP are not split.
    keeps_tcp: bool,
}

impl PacketSplitter {
    /// Creates a splitter for frames with the link layer `link`. Allocates 64 KiB for the packets that the
    /// splitter makes.
    #[must_use]
    pub fn new(link: LinkKind) -> Self {
        let packet = vec![0; MOST_BYTES].into_boxed_slice();
        Self { link, packet, summer: Summer::detect(), keeps_tcp: false }
    }

    /// Makes the splitter pass TCP GSO frames whole from now on, with a complete checksum. Other GSO frames are
    /// still split, including TCP in tunnels and TCP frames whose checksum is not partial.
    #[must_use]
    pub const fn keep_tcp(mut self) -> Self {
        self.keeps_tcp = true;
        self
    }

    /// Passes each packet in `frame` to `each`, in order. Returns `None` if the frame cannot be split, because
    /// its headers contradict its GSO or checksum metadata; `each` may have received some packets before.
    /// Splits at the headers whose offsets are in the metadata; in a tunnel's packet these are the inner
    /// headers. Does not allocate.
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
