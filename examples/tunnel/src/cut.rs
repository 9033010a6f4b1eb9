//! From what the TUN gives to the packets of the tunnel: GSO frames are cut, checksums completed.

use rxo::wire::checksum::{Summer, complete};
use rxo::wire::parse_ip;
use rxo::wire::segmentation::{Checksums, segment};
use rxo::{ChecksumStatus, Frame};

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
        let parsed = parse_ip(bytes).ok()?;
        let checksums = Checksums::Complete(self.summer);
        let mut segments = segment(bytes, &parsed, gso.size, checksums).ok()?;
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
