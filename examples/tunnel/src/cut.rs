//! From what the TUN gives to the packets of the tunnel: GSO frames are cut, checksums completed.

use rxo::vnet::segments;
use rxo::wire::checksum::{Summer, complete};
use rxo::wire::segmentation::Checksums;
use rxo::{ChecksumStatus, Frame, LinkKind};

/// Cuts frames, in memory for one packet.
pub(crate) struct Cutter {
    packet: Vec<u8>,
    summer: Summer,
}

impl Cutter {
    pub(crate) fn new() -> Self {
        Self { packet: vec![0; 1 << 16], summer: Summer::detect() }
    }

    /// Gives `each` the packets of `frame`, in order. `None` if it cannot be cut.
    pub(crate) fn cut(
        &mut self,
        frame: &Frame<impl AsRef<[u8]>>,
        mut each: impl FnMut(&[u8]),
    ) -> Option<()> {
        let bytes = frame.bytes();
        let Some(gso) = frame.gso else {
            if let ChecksumStatus::Partial { start, offset } = frame.checksum {
                let packet = self.packet.get_mut(..bytes.len())?;
                packet.copy_from_slice(bytes);
                finish(packet, start.into(), offset.into(), self.summer)?;
                each(packet);
            } else {
                each(bytes);
            }
            return Some(());
        };
        // By the headers that the frame is described by, which are inside if it is a packet of another tunnel.
        let checksums = Checksums::Complete(self.summer);
        let described = (frame.checksum, gso);
        let mut segments = segments(LinkKind::RawIp, bytes, described, checksums).ok()?;
        while let Some(length) = segments.next_into(&mut self.packet).ok()? {
            each(&self.packet[..length]);
        }
        Some(())
    }
}

/// Completes the checksum over the seed at `start + offset`.
fn finish(packet: &mut [u8], start: usize, offset: usize, summer: Summer) -> Option<()> {
    let checksum = complete(packet, start, offset, summer)?;
    packet.get_mut(start + offset..)?.get_mut(..2)?.copy_from_slice(&checksum.to_be_bytes());
    Some(())
}
