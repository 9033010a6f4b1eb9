//! Prepares packets from the TUN for the tunnel: splits GSO frames and completes checksums.

use rxo::vnet::segments;
use rxo::wire::checksum::{Summer, complete};
use rxo::wire::segmentation::Checksums;
use rxo::{ChecksumStatus, Frame, LinkKind};

/// Splits frames, with a buffer for one packet.
pub(crate) struct Cutter {
    packet: Vec<u8>,
    summer: Summer,
}

impl Cutter {
    pub(crate) fn new() -> Self {
        Self { packet: vec![0; 1 << 16], summer: Summer::detect() }
    }

    /// Passes the packets of `frame` to `each`, in order. `None` if the frame cannot be split.
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
        // Uses the headers that the metadata refers to; these are the inner ones if the packet is from
        // another tunnel.
        let checksums = Checksums::Complete(self.summer);
        let described = (frame.checksum, gso);
        let mut segments = segments(LinkKind::RawIp, bytes, described, checksums).ok()?;
        while let Some(length) = segments.next_into(&mut self.packet).ok()? {
            each(&self.packet[..length]);
        }
        Some(())
    }
}

/// Completes the partial checksum at `start + offset`. `None` if that is outside the packet.
fn finish(packet: &mut [u8], start: usize, offset: usize, summer: Summer) -> Option<()> {
    let checksum = complete(packet, start, offset, summer)?;
    packet.get_mut(start + offset..)?.get_mut(..2)?.copy_from_slice(&checksum.to_be_bytes());
    Some(())
}
