//! The headers of a GSO frame, and those of its segments.

use super::ip::Ip;
use super::tcp::Tcp;
use super::{Checksums, NotSegmentable, Part};
use crate::Offsets;
use crate::build::BuildError;

/// Makes the headers of segments from those of their GSO frame. What all segments share is looked at once,
/// when it is made.
///
/// # Examples
/// Payload that stays where it is, as for `writev`:
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
/// let segmenter = Segmenter::new(&headers, at, Checksums::Partial)?;
/// for part in parts(payload.len(), size) {
///     let (mut head, payload) = (headers, &payload[part.range()]);
///     segmenter.write(&mut head, part, &[payload])?;
///     // Send `head`, then `payload`.
/// #   assert_eq!(u16::from_be_bytes([head[2], head[3]]), 40 + payload.len() as u16);
/// }
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Segmenter {
    at: Offsets,
    ip: Ip,
    tcp: Tcp,
}

impl Segmenter {
    /// Reads `headers`: the bytes of a GSO frame from its first to its last TCP option; more may follow.
    /// Of `at` the end is not used.
    ///
    /// # Errors
    /// [`NotSegmentable::NotTcp`] if there are no IP header and TCP header at these offsets. The protocol
    /// number is not looked at.
    #[inline]
    pub fn new(headers: &[u8], at: Offsets, checksums: Checksums) -> Result<Self, NotSegmentable> {
        let read = || {
            let ip = Ip::read(headers.get(at.ip_header())?)?;
            let tcp = Tcp::read(headers.get(at.transport_header())?, ip.pseudo, checksums)?;
            Some(Self { at, ip, tcp })
        };
        read().ok_or(NotSegmentable::NotTcp)
    }

    /// The same segmenter, which gives all segments the IPv4 identification of the first. By default each
    /// has the one before plus 1. Does nothing for IPv6.
    ///
    /// Some senders never change the identification of packets with DF (RFC 6864, section 4.1); kernels
    /// know that as `SKB_GSO_TCP_FIXEDID`, a virtio-net header cannot say it.
    #[inline]
    #[must_use]
    pub const fn with_fixed_id(mut self) -> Self {
        self.ip.id_step = 0;
        self
    }

    /// Makes `headers`, a copy of the headers of the GSO frame, those of the segment `part`. `payload` is
    /// the payload of this segment in as many pieces as it has, and read only for complete checksums.
    ///
    /// # Errors
    /// [`BuildError::NoRoom`] if `headers` is shorter than the headers, [`BuildError::PacketTooLong`] if
    /// the segment is longer than IP allows. Nothing has been written then.
    #[inline(always)]
    pub fn write(
        &self,
        headers: &mut [u8],
        part: Part,
        payload: &[&[u8]],
    ) -> Result<(), BuildError> {
        let Offsets { network, transport, payload: end, .. } = self.at;
        let segment_bytes = ((end - transport) as usize).saturating_add(part.bytes);
        let bytes = ((transport - network) as usize).saturating_add(segment_bytes);
        let packet_bytes = u16::try_from(bytes).map_err(|_| BuildError::PacketTooLong { bytes })?;
        let no_room = BuildError::NoRoom { needed: end as usize, given: headers.len() };
        let headers = headers.get_mut(..end as usize).ok_or(no_room)?;
        let (ip, tcp) = headers.split_at_mut_checked(transport as usize).ok_or(no_room)?;
        let ip = ip.get_mut(network as usize..).ok_or(no_room)?;
        let ip_written = self.ip.write(ip, part.index, packet_bytes);
        let tcp_written = self.tcp.write(tcp, part, segment_bytes as u32, payload);
        ip_written.and(tcp_written).ok_or(no_room)
    }
}
