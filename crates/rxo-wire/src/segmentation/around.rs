//! Segmentation of the outer headers of a tunnel.
//!
//! Separate from the segmenter because hardly any GSO frame has outer headers. Each segment gets its own
//! outer lengths, outer identification, and checksums that cover the whole segment.

use super::ip::{self, Ip};
use super::{NotSegmentable, Part};
use crate::Offsets;
use crate::build::BuildError;
use crate::checksum::Sum;
use crate::tunnel::{Carrier, Inside};
use crate::udp;

/// State from which the outer headers of all segments are computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    outer: Offsets,
    inner: Offsets,
    carrier: Carrier,
    ip: Ip,
    /// The sum of the inner pseudo-header without the length.
    inner_pseudo: Sum,
}

const GRE_CHECKSUM_AT: usize = 4;

impl Around {
    /// Reads the headers of `frame` outside the packet `inside`.
    pub(super) fn read(frame: &[u8], inside: &Inside) -> Result<Self, NotSegmentable> {
        let Inside { parsed, outer, carrier } = inside;
        let protocol = match carrier {
            Carrier::Udp { .. } => crate::PROTOCOL_UDP,
            // Of these, only the UDP checksum covers a pseudo-header.
            Carrier::Gre { .. } | Carrier::Ip => 0,
        };
        let ip = frame.get(outer.ip_header()).and_then(|header| Ip::read(header, protocol));
        let inner = frame.get(parsed.at.ip_header());
        let inner = inner.and_then(|header| Ip::read(header, parsed.transport.protocol()?));
        let (ip, inner_ip) = ip.zip(inner).ok_or(NotSegmentable::Transport)?;
        let inner_pseudo = inner_ip.pseudo;
        Ok(Self { outer: *outer, inner: parsed.at, carrier: *carrier, ip, inner_pseudo })
    }

    /// Gives the outer headers of all segments the same IPv4 identification.
    pub(super) const fn with_fixed_id(mut self) -> Self {
        self.ip.id_step = 0;
        self
    }

    /// Writes the outer headers of the segment `part` into `headers`, which already contain the inner headers
    /// of the segment. The sum of the inner segment is derived from the inner pseudo-header, so the payload is
    /// not read.
    pub(super) fn write(&self, headers: &mut [u8], part: Part) -> Result<(), BuildError> {
        let Offsets { network, transport, .. } = self.outer;
        let end = headers.len() + part.bytes;
        let (network, transport) = (network as usize, transport as usize);
        let bytes = end - network;
        let length = self.ip.length(bytes).ok_or(BuildError::PacketTooLong { bytes })?;
        let no_room = BuildError::NoRoom { needed: end, given: headers.len() };
        let ip: &mut ip::Start =
            headers.get_mut(network..).and_then(<[u8]>::first_chunk_mut).ok_or(no_room)?;
        self.ip.write(ip, part.index, length);
        let carried = (end - transport) as u32;
        let header = headers.get_mut(transport..self.inner.transport as usize).ok_or(no_room)?;
        let inner = Sum::word(!self.inner_sum(end));
        match self.carrier {
            Carrier::Udp { has_checksum } => {
                put(header, udp::LENGTH_AT, carried as u16);
                if has_checksum {
                    put(header, udp::CHECKSUM_AT, 0);
                    let sum = self.ip.pseudo + Sum::long(carried) + Sum::of(header) + inner;
                    put(header, udp::CHECKSUM_AT, udp::never_zero(sum.checksum()));
                }
            }
            Carrier::Gre { has_checksum: true } => {
                put(header, GRE_CHECKSUM_AT, 0);
                put(header, GRE_CHECKSUM_AT, (Sum::of(header) + inner).checksum());
            }
            Carrier::Gre { has_checksum: false } | Carrier::Ip => {}
        }
        Ok(())
    }

    /// Returns the offset of the outer UDP header; `None` unless the tunnel uses UDP with a checksum.
    pub(super) const fn datagrams(&self) -> Option<usize> {
        match self.carrier {
            Carrier::Udp { has_checksum: true } => Some(self.outer.transport as usize),
            Carrier::Udp { .. } | Carrier::Gre { .. } | Carrier::Ip => None,
        }
    }

    /// Changes `headers`, which end with the outer UDP header, to the headers of a UDP GSO frame. The payload of
    /// this frame is `carried` bytes long; its first segment is the one with the number `index`. The checksum is
    /// left partial.
    pub(super) fn write_train(
        &self,
        headers: &mut [u8],
        index: usize,
        carried: usize,
    ) -> Result<(), BuildError> {
        let Offsets { network, transport, .. } = self.outer;
        let bytes = headers.len() - network as usize + carried;
        let length = self.ip.length(bytes).ok_or(BuildError::PacketTooLong { bytes })?;
        let no_room = BuildError::NoRoom { needed: transport as usize, given: headers.len() };
        let udp_bytes = headers.len() - transport as usize + carried;
        let udp_length =
            u16::try_from(udp_bytes).map_err(|_| BuildError::PacketTooLong { bytes: udp_bytes })?;
        let (ip, udp) = headers.split_at_mut_checked(transport as usize).ok_or(no_room)?;
        let ip = ip.get_mut(network as usize..).and_then(<[u8]>::first_chunk_mut).ok_or(no_room)?;
        self.ip.write(ip, index, length);
        put(udp, udp::LENGTH_AT, udp_length);
        put(udp, udp::CHECKSUM_AT, (self.ip.pseudo + Sum::word(udp_length)).fold());
        Ok(())
    }

    /// Returns the folded sum of the inner pseudo-header of a segment that ends at `end`. This value plus the
    /// sum of the inner segment is zero in one's complement (RFC 1071; Linux calls this local checksum
    /// offload).
    fn inner_sum(&self, end: usize) -> u16 {
        (self.inner_pseudo + Sum::long((end - self.inner.transport as usize) as u32)).fold()
    }
}

fn put(header: &mut [u8], at: usize, value: u16) {
    if let Some(field) = header.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}
