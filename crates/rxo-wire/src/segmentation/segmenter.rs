//! Computes the headers of segments from those of their GSO frame.

use core::num::NonZeroU16;

use super::ip::{self, Ip, Length};
use super::layer::Layer;
use super::{Checksums, NotSegmentable, Part, Tcp, Udp};
use crate::Offsets;
use crate::build::BuildError;
use crate::checksum::Sum;

/// Computes the headers of segments from those of their GSO frame. The fields that all segments share are read
/// once, and the values that all full segments share are computed once. The default protocol is TCP.
///
/// # Examples
/// Payload in a separate buffer, as for `writev`:
///
/// ```
/// # use core::num::NonZeroU16;
/// # use rxo_wire::build::{Ipv4Header, TcpHeader};
/// use rxo_wire::Offsets;
/// use rxo_wire::segmentation::{Checksums, Segmenter, parts};
/// # let mut headers = [0; 40];
/// # let ip = Ipv4Header { protocol: 6, payload_bytes: 20, ..Ipv4Header::default() };
/// # TcpHeader::default().write(ip.write(&mut headers)?)?;
/// # let (payload, size) = ([7; 2_500], NonZeroU16::new(1_000).unwrap());
/// let at = Offsets { network: 0, transport: 20, payload: 40, end: 40 };
/// let segmenter = Segmenter::new(&headers, at, size, Checksums::Partial)?;
/// for part in parts(payload.len(), size) {
///     let (mut head, payload) = (headers, &payload[part.range()]);
///     segmenter.write(&mut head, part, [payload])?;
///     // Send `head`, then `payload`.
/// #   assert_eq!(u16::from_be_bytes([head[2], head[3]]), 40 + payload.len() as u16);
/// }
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Segmenter<T = Tcp> {
    at: Offsets,
    ip: Ip,
    transport: T,
    size: usize,
    /// The header values of a full segment, which has `size` bytes of payload. `None` if such a segment is
    /// longer than IP allows.
    full: Option<Lengths>,
}

/// The header values that depend only on the length of a segment.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    ip: Length,
    transport: (Sum, u16),
}

impl Segmenter<Tcp> {
    /// Reads `headers`: the bytes of a GSO frame up to the end of its TCP options; more may follow. Each
    /// segment but the last gets `size` bytes of payload. Ignores the field `end` of `at`.
    ///
    /// # Errors
    /// [`NotSegmentable::Transport`] if there are no IP header and TCP header at these offsets. The protocol
    /// number is not checked.
    #[inline]
    pub fn new(
        headers: &[u8],
        at: Offsets,
        size: NonZeroU16,
        checksums: Checksums,
    ) -> Result<Self, NotSegmentable> {
        Self::read(headers, at, size, checksums).ok_or(NotSegmentable::Transport)
    }
}

impl Segmenter<Udp> {
    /// Reads the headers of a UDP GSO frame: each datagram but the last gets `size` bytes of payload. Ignores
    /// the field `end` of `at`.
    ///
    /// # Errors
    /// [`NotSegmentable::Transport`] if there are no IP header and UDP header at these offsets. The protocol
    /// number is not checked.
    #[inline]
    pub fn of_datagrams(
        headers: &[u8],
        at: Offsets,
        size: NonZeroU16,
        checksums: Checksums,
    ) -> Result<Self, NotSegmentable> {
        Self::read(headers, at, size, checksums).ok_or(NotSegmentable::Transport)
    }
}

impl<T: Layer> Segmenter<T> {
    #[inline]
    fn read(headers: &[u8], at: Offsets, size: NonZeroU16, checksums: Checksums) -> Option<Self> {
        let ip = Ip::read(headers.get(at.ip_header())?, T::PROTOCOL)?;
        let transport = T::read(headers.get(at.transport_header())?, ip.pseudo, checksums)?;
        let mut segmenter = Self { at, ip, transport, size: size.get().into(), full: None };
        segmenter.full = segmenter.lengths(segmenter.size).ok();
        Some(segmenter)
    }

    /// Gives all segments the IPv4 identification of the first. By default it increments by 1 per segment.
    /// Does nothing for IPv6.
    ///
    /// Some senders never change the identification of packets with DF (RFC 6864, section 4.1). Kernels mark
    /// such frames with `SKB_GSO_TCP_FIXEDID`; a virtio-net header has no such flag.
    #[inline]
    #[must_use]
    pub const fn with_fixed_id(mut self) -> Self {
        self.ip.id_step = 0;
        self
    }

    /// Writes the headers of the segment `part` over `headers`, a copy of the GSO frame's headers. `payload`
    /// is the payload of this segment in any number of slices; it is read only for complete checksums.
    ///
    /// # Errors
    /// [`BuildError::NoRoom`] if `headers` is too short, [`BuildError::PacketTooLong`] if the segment is
    /// longer than IP allows. If there is an error, nothing is written.
    #[inline(always)]
    pub fn write<'p>(
        &self,
        headers: &mut [u8],
        part: Part,
        payload: impl IntoIterator<Item = &'p [u8]>,
    ) -> Result<(), BuildError> {
        let Lengths { ip: length, transport: sum } = match self.full {
            Some(full) if part.bytes == self.size => full,
            _ => self.lengths(part.bytes)?,
        };
        let no_room = BuildError::NoRoom { needed: self.at.payload as usize, given: headers.len() };
        let (ip, transport) = self.split(headers).ok_or(no_room)?;
        self.ip.write(ip, part.index, length);
        self.transport.write(transport, part, sum, payload);
        Ok(())
    }

    /// Writes the headers of the segment `part` over `headers`, which contain those of another middle segment
    /// (neither first nor last): only the fields that differ are written. Returns `false` and writes nothing
    /// if `part` is the first or the last, or `headers` is too short.
    #[inline(always)]
    pub fn write_middle<'p>(
        &self,
        headers: &mut [u8],
        part: Part,
        payload: impl IntoIterator<Item = &'p [u8]>,
    ) -> bool {
        let Some((Lengths { ip: length, transport: (sum, _) }, (ip, transport))) =
            self.full.filter(|_| part.is_middle()).zip(self.split(headers))
        else {
            return false;
        };
        self.ip.write_id(ip, part.index, length);
        self.transport.write_middle(transport, part, sum, payload);
        true
    }

    /// Returns the starts of the IP header and the transport header in `headers`, which contain all fields that
    /// segmentation changes; `None` if `headers` is too short.
    #[inline(always)]
    fn split<'h>(&self, headers: &'h mut [u8]) -> Option<(&'h mut ip::Start, &'h mut T::Start)> {
        let Offsets { network, transport, payload, .. } = self.at;
        let headers = headers.get_mut(..payload as usize)?;
        let (ip, transport) = headers.split_at_mut_checked(transport as usize)?;
        Some((ip.get_mut(network as usize..)?.first_chunk_mut()?, T::start(transport)?))
    }

    fn lengths(&self, payload_bytes: usize) -> Result<Lengths, BuildError> {
        let segment_bytes = self.at.transport_header().len().saturating_add(payload_bytes);
        let bytes = self.at.ip_header().len().saturating_add(segment_bytes);
        let ip = self.ip.length(bytes).ok_or(BuildError::PacketTooLong { bytes })?;
        let sum = self.transport.sum(segment_bytes as u32);
        Ok(Lengths { ip, transport: (sum, sum.fold()) })
    }
}
