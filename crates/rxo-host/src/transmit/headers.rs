//! The headers of one packet, from the link to TCP.

use rxo_frame::{ChecksumStatus, Offload};
use rxo_tcp::{Text, Transmit};
use rxo_wire::Offsets;
use rxo_wire::build::BuildError;
use rxo_wire::checksum::{Sum, Summer};
use rxo_wire::tcp::CHECKSUM_AT;

use super::cut::text_sum;
use super::shape::{Ip, Path};

/// Headers as they are written, of a segment or a GSO send.
pub(super) struct Headers {
    bytes: [u8; MOST_HEADERS_BYTES],
    /// The payload begins where the headers end; where it ends is not said.
    at: Offsets,
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
        let transport = u32::from(path.transport);
        let payload = transport + tcp.bytes() as u32;
        let at = Offsets { network: path.network.into(), transport, payload, end: payload };
        Ok(Self { bytes, at })
    }

    /// Fills the TCP checksum in; without a `summer`, what a device completes it from.
    pub(super) fn with_checksum(
        mut self,
        path: &Path,
        text: Text<'_>,
        summer: Option<Summer>,
    ) -> Self {
        let tcp = &self.bytes[self.at.transport_header()];
        let bytes = tcp.len() + text.len();
        let pseudo = path.pseudo + Sum::long(bytes as u32);
        let value = match summer {
            None => pseudo.fold(),
            Some(summer) => (pseudo + Sum::of(tcp) + text_sum(text, summer)).checksum(),
        };
        let at = self.at.transport as usize + CHECKSUM_AT;
        self.bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
        self
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.at.payload as usize]
    }

    /// Where the headers are.
    pub(super) const fn at(&self) -> Offsets {
        self.at
    }

    /// What the device is told of a packet with them, whose checksum is complete or a seed.
    pub(super) const fn offload(&self, completes_checksums: bool) -> Offload {
        let (start, offset) = (self.at.transport as u16, CHECKSUM_AT as u16);
        let checksum = if completes_checksums {
            ChecksumStatus::Partial { start, offset }
        } else {
            ChecksumStatus::Verified
        };
        Offload { checksum, gso: None, header_bytes: self.at.payload as u16 }
    }
}

/// Ethernet, IPv6, TCP with all its options.
pub(super) const MOST_HEADERS_BYTES: usize = 14 + 40 + 60;
