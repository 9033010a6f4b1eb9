//! Builds the headers of one packet, from the link to TCP.

use rxo_frame::{ChecksumStatus, Offload};
use rxo_tcp::{Text, Transmit};
use rxo_wire::Offsets;
use rxo_wire::build::BuildError;
use rxo_wire::checksum::{Sum, Summer};
use rxo_wire::tcp::CHECKSUM_AT;

use super::cut::text_sum;
use super::shape::{Ip, Path};

/// The link, IP and TCP headers of a segment or a GSO frame.
pub(super) struct Headers {
    bytes: [u8; MOST_HEADERS_BYTES],
    /// The offsets of the headers. `payload` and `end` are both the end of the headers, because the data is
    /// stored elsewhere.
    at: Offsets,
}

impl Headers {
    /// Builds the headers of `transmit` for `text_bytes` of data. The TCP checksum is left 0.
    ///
    /// # Errors
    /// If the packet would be too long for IP.
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

    /// Writes the TCP checksum. If `summer` is `None`, writes the partial sum from which the device completes
    /// the checksum.
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

    /// Returns the offsets of the headers.
    pub(super) const fn at(&self) -> Offsets {
        self.at
    }

    /// Returns the metadata of a packet with these headers for the device. The checksum is partial if the
    /// device completes it.
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

/// The length in bytes of the longest headers: Ethernet, IPv6, and TCP with all options.
pub(super) const MOST_HEADERS_BYTES: usize = 14 + 40 + 60;
