//! A frame and the `virtio_net_hdr` before it, as written to a TAP or read from it.

use rxo_frame::{ChecksumStatus, Frame, Gather, Instant};
use rxo_vnet::{VNET_HEADER_BYTES, VnetHeader, packets};
use rxo_wire::parse;

/// A frame and the virtio-net header before it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Whole {
    pub(crate) header: [u8; VNET_HEADER_BYTES],
    pub(crate) bytes: Vec<u8>,
}

impl Whole {
    /// Joins the slices of a delivery, with the header that a sink writes.
    pub(crate) fn of<'a>(packet: impl Gather<'a>) -> Self {
        let header = VnetHeader::for_packet(packet.offload(), 0).to_bytes();
        let mut bytes = Vec::with_capacity(packet.byte_len());
        packet.for_each_slice(|slice| bytes.extend_from_slice(slice));
        Self { header, bytes }
    }

    /// Takes the bytes that a kernel delivered: a header, and a frame without the `tag` that the kernel
    /// removed. The tag is inserted again.
    pub(crate) fn seen(read: &[u8], tag: Option<[u8; 4]>) -> Self {
        let (header, bytes) = read.split_at(VNET_HEADER_BYTES);
        let (mut header, mut bytes): ([u8; VNET_HEADER_BYTES], _) =
            (header.try_into().unwrap(), bytes.to_vec());
        if let Some(tag) = tag {
            bytes.splice(12..12, tag);
            let start = u16::from_ne_bytes([header[6], header[7]]) + 4;
            header[6..8].copy_from_slice(&start.to_ne_bytes());
        }
        Self { header, bytes }
    }

    fn said(&self) -> VnetHeader {
        VnetHeader::read(&self.header).unwrap()
    }

    /// Returns the frame as a TAP gives it to the engine.
    pub(crate) fn frame(&self) -> Frame<Vec<u8>> {
        let mut frame = Frame::new(self.bytes.clone(), Instant::ZERO);
        (frame.checksum, frame.gso) = (self.said().checksum(), self.said().gso());
        frame
    }

    /// Returns the frame without the optional parts of its header: the mark that checksums are right, and the
    /// length of the headers.
    pub(crate) fn essential(&self) -> Self {
        let mut header = [0; VNET_HEADER_BYTES];
        if let ChecksumStatus::Partial { .. } = self.said().checksum() {
            header[0] = 1;
            header[6..].copy_from_slice(&self.header[6..]);
        }
        if self.said().gso().is_some() {
            header[1] = self.header[1];
            header[4..6].copy_from_slice(&self.header[4..6]);
        }
        Self { header, bytes: self.bytes.clone() }
    }

    /// Returns the number of frames that the value stands for on a network.
    pub(crate) fn segments(&self) -> usize {
        let payload_at = parse(&self.bytes).map_or(0, |parsed| parsed.at.payload as usize);
        let payload = self.bytes.len() - payload_at;
        self.said().gso().map_or(1, |gso| payload.div_ceil(gso.size.get().into()).max(1))
    }

    /// Returns the frames that the value stands for on a network, segmented by rxo. The header of the
    /// Ethernet frame is converted to the header that a TUN would give for the IP packet.
    pub(crate) fn frames(&self) -> Result<Vec<Vec<u8>>, String> {
        let network = network_at(&self.bytes);
        let mut from_tun = self.header.to_vec();
        for at in [2, 6] {
            let value = u16::from_ne_bytes([from_tun[at], from_tun[at + 1]]);
            let value = value.saturating_sub(network as u16);
            from_tun[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        }
        from_tun.extend(&self.bytes[network..]);
        let mut packets = packets(&from_tun).map_err(|why| format!("{why:?}"))?;
        let (mut frames, mut out) = (Vec::new(), vec![0; from_tun.len()]);
        while let Some(bytes) = packets.next_into(&mut out).map_err(|why| format!("{why:?}"))? {
            frames.push([&self.bytes[..network], &out[..bytes]].concat());
        }
        Ok(frames)
    }
}

/// Returns the offset of the IP packet, after the Ethernet header and tags.
pub(crate) fn network_at(bytes: &[u8]) -> usize {
    let mut at = 14;
    while bytes.get(at - 2..at).is_some_and(|kind| kind == [0x81, 0] || kind == [0x88, 0xa8]) {
        at += 4;
    }
    at.min(bytes.len())
}
