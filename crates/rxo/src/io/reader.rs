//! Reader: returns the packets of a source in the form that they have on the network.

#[cfg(unix)]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rxo_device::{DeviceError, FrameSource};
use rxo_frame::Frame;

use super::PacketSplitter;

/// Reads single packets from a source: splits GSO frames, and completes partial checksums. Does not restore a
/// VLAN tag that the device has removed from the bytes.
///
/// All packets of a GSO frame cost one system call. A program that reads packet by packet pays one call for
/// each.
#[derive(Debug)]
pub struct PacketReader<S: FrameSource> {
    source: S,
    batch: Vec<Frame<S::Buffer>>,
    splitter: PacketSplitter,
    invalid: u64,
}

impl<S: FrameSource> PacketReader<S> {
    /// Creates a reader. Allocates 64 KiB for the packets that the reader makes.
    #[must_use]
    pub fn new(source: S) -> Self {
        let splitter = PacketSplitter::new(source.capabilities().link);
        Self { source, batch: Vec::new(), splitter, invalid: 0 }
    }

    /// Makes the reader pass TCP GSO frames whole from now on, with a complete checksum. For a program with its
    /// own TCP, which then processes one segment of up to 64 KiB instead of 45 segments. Other GSO frames are
    /// still split, including TCP in tunnels and TCP frames whose checksum is not partial.
    #[must_use]
    pub fn keep_tcp(mut self) -> Self {
        self.splitter = self.splitter.keep_tcp();
        self
    }

    /// Reads at most `budget` frames, and passes each packet in them to `each`, in order. Returns the number of
    /// frames that were read. A number below `budget` means that no more frames are available now. Does not
    /// block.
    ///
    /// # Errors
    /// If the device was removed, or the system refuses to receive.
    pub fn read(
        &mut self,
        budget: usize,
        mut each: impl FnMut(&[u8]),
    ) -> Result<usize, DeviceError> {
        // A source that runs out of buffers returns fewer frames than it has. So the reader requests at most as
        // many frames as the source has buffers to lend.
        let most = self.source.lends().unwrap_or(usize::MAX).max(1);
        let mut read = 0;
        while read < budget {
            let wanted = most.min(budget - read);
            let received = self.source.receive(&mut self.batch, wanted);
            for frame in self.batch.drain(..) {
                self.invalid += u64::from(self.splitter.split(&frame, &mut each).is_none());
            }
            let received = received?;
            read += received;
            if received < wanted {
                break;
            }
        }
        Ok(read)
    }

    /// Returns the number of frames that could not be split, because their headers contradict their GSO or
    /// checksum metadata.
    pub const fn invalid(&self) -> u64 {
        self.invalid
    }

    /// Returns the source.
    pub const fn source(&self) -> &S {
        &self.source
    }
}

#[cfg(unix)]
impl<S: FrameSource + AsFd> AsFd for PacketReader<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

/// Returns the descriptor as a raw number, because asynchronous runtimes require it.
#[cfg(unix)]
impl<S: FrameSource + AsFd> AsRawFd for PacketReader<S> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use rxo_device::{MemoryLink, MemoryOptions, SourceCapabilities, SourceCounters};
    use rxo_frame::{ChecksumStatus, Instant, LinkKind, Offload};
    use rxo_testkit::seg;
    use rxo_wire::checksum::{Summer, verify_transport};
    use rxo_wire::parse_ip;

    use super::*;
    use crate::io::PacketWriter;

    /// A source of frames that were made before.
    struct Made(Vec<Frame<Vec<u8>>>);

    impl FrameSource for Made {
        type Buffer = Vec<u8>;

        fn capabilities(&self) -> SourceCapabilities {
            SourceCapabilities { link: LinkKind::RawIp, mtu: 1_500, gives_gso: true }
        }

        fn receive(
            &mut self,
            batch: &mut Vec<Frame<Vec<u8>>>,
            budget: usize,
        ) -> Result<usize, DeviceError> {
            let count = budget.min(self.0.len());
            batch.extend(self.0.drain(..count));
            Ok(count)
        }

        fn counters(&mut self) -> SourceCounters {
            SourceCounters::default()
        }
    }

    #[test]
    fn what_a_writer_has_coalesced_comes_back_bit_for_bit() {
        let packets = packets();
        let mut partial = seg().raw_ip().len(30).bytes();
        let complete = partial.clone();
        let at = 20 + 16;
        // The sum of the pseudo-header, as a host leaves it to its device.
        partial[at..at + 2].copy_from_slice(&pseudo(&complete).to_be_bytes());
        let partial = Frame {
            checksum: ChecksumStatus::Partial { start: 20, offset: 16 },
            ..Frame::new(partial, Instant::ZERO)
        };
        let mut reader = PacketReader::new(Made(vec![coalesced(&packets), partial]));
        let mut read = Vec::new();
        assert_eq!(reader.read(4, |packet| read.push(packet.to_vec())).unwrap(), 2);
        assert_eq!((read.len(), reader.invalid()), (8, 0));
        assert!(read[..7] == packets[..] && read[7] == complete, "bit for bit");
    }

    #[test]
    fn a_tcp_of_its_own_gets_one_segment_with_all_payload_and_a_right_checksum() {
        let packets = packets();
        let mut reader = PacketReader::new(Made(vec![coalesced(&packets)])).keep_tcp();
        let mut read = Vec::new();
        assert_eq!(reader.read(4, |packet| read.push(packet.to_vec())).unwrap(), 1);
        let [whole] = &read[..] else { panic!("{} packets", read.len()) };
        let parsed = parse_ip(whole).unwrap();
        assert!(verify_transport(&parsed, whole, Summer::detect()));
        let payloads: Vec<u8> = packets.iter().flat_map(|packet| &packet[40..]).copied().collect();
        assert!(whole[40..] == payloads[..], "{} bytes", whole.len());
    }

    fn packets() -> Vec<Vec<u8>> {
        let packet = |n| seg().raw_ip().id(n).seq(1 + u32::from(n) * 900).len(900).bytes();
        (0..7).map(packet).collect()
    }

    /// Returns the one frame that a writer makes of `packets`.
    fn coalesced(packets: &[Vec<u8>]) -> Frame<Vec<u8>> {
        let tun = MemoryLink::new(MemoryOptions { link: LinkKind::RawIp, ..Default::default() });
        let mut writer = PacketWriter::new(tun.sink(), 8).unwrap();
        packets.iter().for_each(|packet| writer.write(packet).unwrap());
        writer.flush().unwrap();
        let mut written = tun.take_all();
        assert_eq!(written.len(), 1);
        let Offload { checksum, gso, .. } = written[0].offload;
        Frame { checksum, gso, ..Frame::new(written.remove(0).bytes, Instant::ZERO) }
    }

    /// Returns the sum of the pseudo-header of a TCP segment over IPv4, folded and not complemented.
    fn pseudo(packet: &[u8]) -> u16 {
        let segment_bytes = (packet.len() - 20) as u16;
        let words =
            packet[12..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum = words.sum::<u32>() + 6 + u32::from(segment_bytes);
        ((sum & 0xffff) + (sum >> 16)) as u16
    }
}
