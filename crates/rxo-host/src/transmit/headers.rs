//! The headers of one packet, from the link to TCP.

use rxo_frame::{ChecksumStatus, Offload};
use rxo_tcp::Transmit;
use rxo_wire::build::BuildError;
use rxo_wire::checksum::{Sum, Summer};

use super::cut::{CHECKSUM_AT, text_sum};
use super::shape::{Ip, Path};

/// Headers as they are written, of a segment or a large send.
pub(super) struct Headers {
    bytes: [u8; MOST_HEADERS_BYTES],
    length: usize,
    network: usize,
    transport: usize,
}

impl Headers {
    /// Of `transmit` with `text_bytes` of text; the TCP checksum is 0.
    ///
    /// # Errors
    /// When the packet is longer than IP can say.
    pub(super) fn new(
        path: &Path,
        transmit: &Transmit<'_>,
        text_bytes: usize,
        id: u16,
    ) -> Result<Self, BuildError> {
        let tcp = transmit.header(&path.pair);
        let mut bytes = [0; MOST_HEADERS_BYTES];
        let ip = Ip { bytes: tcp.bytes() + text_bytes, ecn: transmit.ecn.bits(), id };
        tcp.write(path.write(ip, &mut bytes)?)?;
        let (network, transport) = (usize::from(path.network), usize::from(path.transport));
        let length = transport + tcp.bytes();
        Ok(Self { bytes, length, network, transport })
    }

    /// The same with the TCP checksum, or, without a `summer`, what a device completes it from.
    pub(super) fn with_checksum(
        mut self,
        path: &Path,
        text: [&[u8]; 2],
        summer: Option<Summer>,
    ) -> Self {
        let tcp = &self.bytes[self.transport..self.length];
        let bytes = tcp.len() + text[0].len() + text[1].len();
        let pseudo = path.pseudo + Sum::long(bytes as u32);
        let value = match summer {
            None => pseudo.fold(),
            Some(summer) => (pseudo + Sum::of(tcp) + text_sum(text, summer)).checksum(),
        };
        let at = self.transport + CHECKSUM_AT;
        self.bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
        self
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Where IP begins, and where TCP.
    pub(super) const fn places(&self) -> [usize; 2] {
        [self.network, self.transport]
    }

    /// What the device is told of a packet with them, whose checksum is complete or a seed.
    pub(super) const fn offload(&self, completes_checksums: bool) -> Offload {
        let (start, offset) = (self.transport as u16, CHECKSUM_AT as u16);
        let checksum = if completes_checksums {
            ChecksumStatus::Partial { start, offset }
        } else {
            ChecksumStatus::Verified
        };
        Offload { checksum, gso: None, header_bytes: self.length as u16 }
    }
}

/// Ethernet, IPv6, TCP with all its options.
pub(super) const MOST_HEADERS_BYTES: usize = 14 + 40 + 60;
