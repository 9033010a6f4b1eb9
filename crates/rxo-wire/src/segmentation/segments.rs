//! Segments a GSO frame that is in one buffer.

use core::num::NonZeroU16;

use super::around::Around;
use super::{Checksums, NotSegmentable, Part, Parts, Segmenter, Udp, parts};
use crate::build::BuildError;
use crate::tunnel::{Inside, inside_at};
use crate::{IpVersion, Parsed, Transport};

/// Segments `frame`, whose headers are `parsed`, into frames with `size` bytes of payload each; the last may
/// have less. Padding after the packet is ignored. A frame with at most `size` bytes of payload becomes one
/// segment.
///
/// # Errors
/// [`NotSegmentable`] with the reason; the frame can then only be sent as it is.
///
/// # Examples
/// ```
/// # use core::num::NonZeroU16;
/// # use rxo_wire::build::{Ipv4Header, TcpHeader};
/// use rxo_wire::parse_ip;
/// use rxo_wire::segmentation::{Checksums, segment};
/// # let mut frame = [0; 40 + 2_500];
/// # let ip = Ipv4Header { protocol: 6, payload_bytes: 20 + 2_500, ..Ipv4Header::default() };
/// # TcpHeader::default().write(ip.write(&mut frame)?)?;
/// # let size = NonZeroU16::new(1_000).unwrap();
///
/// let parsed = parse_ip(&frame).map_err(|_| "unreadable")?;
/// let mut segments = segment(&frame, &parsed, size, Checksums::Partial)?;
/// let (mut out, mut lengths) = ([0; 1_500], Vec::new());
/// while let Some(bytes) = segments.next_into(&mut out)? {
///     // Send `out[..bytes]`.
///     lengths.push(bytes);
/// }
/// assert_eq!(lengths, [1_040, 1_040, 540]);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[inline]
pub fn segment<'f>(
    frame: &'f [u8],
    parsed: &Parsed,
    size: NonZeroU16,
    checksums: Checksums,
) -> Result<Segments<'f>, NotSegmentable> {
    let is_udp = match parsed.transport {
        Transport::Tcp(_) => false,
        Transport::Udp(udp) if u32::from(udp.length) == parsed.at.segment_bytes() => true,
        _ => return Err(NotSegmentable::Transport),
    };
    if parsed.ip.has_odd_extensions {
        return Err(NotSegmentable::Extensions);
    }
    let headers = frame.get(..parsed.at.payload as usize).ok_or(NotSegmentable::Transport)?;
    let payload = frame.get(parsed.at.payload_range()).ok_or(NotSegmentable::Transport)?;
    if payload.is_empty() {
        return Err(NotSegmentable::NoPayload);
    }
    let segmenter = match is_udp {
        false => Either::Tcp(Segmenter::new(headers, parsed.at, size, checksums)?),
        true => Either::Udp(Segmenter::of_datagrams(headers, parsed.at, size, checksums)?),
    };
    Ok(Segments { segmenter, around: None, headers, payload, parts: parts(payload.len(), size) })
}

/// Segments the packet `inside` the tunnel packet in `frame`, like [`segment`]. Each segment is a tunnel
/// packet with `size` bytes of inner payload. `checksums` applies to the inner checksum; outer checksums are
/// always complete.
///
/// # Errors
/// [`NotSegmentable`] with the reason.
pub fn segment_inside<'f>(
    frame: &'f [u8],
    inside: &Inside,
    size: NonZeroU16,
    checksums: Checksums,
) -> Result<Segments<'f>, NotSegmentable> {
    let around = Around::read(frame, inside)?;
    let segments = segment(frame, &inside.parsed, size, checksums)?;
    Ok(Segments { around: Some(around), ..segments })
}

/// Identifies the headers by which a GSO frame is to be segmented, as the device's metadata describes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stated {
    /// The protocol of the segments: TCP or UDP.
    pub protocol: u8,
    /// `true` for IPv6, `false` for IPv4; `None` if unknown.
    pub is_v6: Option<bool>,
    /// The offset of the transport header in the frame, at which a partial checksum starts. `None` if the device
    /// did not report the offset; the transport header is then that of the outermost packet.
    pub transport: Option<usize>,
}

impl Stated {
    /// Returns `true` if the headers in `parsed` are those that `self` identifies.
    #[must_use]
    pub fn is(&self, parsed: &Parsed) -> bool {
        let is_v6 = parsed.ip.version == IpVersion::V6;
        parsed.transport.protocol() == Some(self.protocol)
            && self.is_v6.is_none_or(|stated| stated == is_v6)
            && self.transport.is_none_or(|at| at == parsed.at.transport as usize)
    }

    /// Returns the inner packet of the tunnel packet in `frame`, whose outer headers are `outer`. `None` if
    /// there is no inner packet with the headers that `self` identifies.
    #[must_use]
    pub fn inside(&self, frame: &[u8], outer: &Parsed) -> Option<Inside> {
        inside_at(frame, outer, self.transport?).filter(|inside| self.is(&inside.parsed))
    }
}

/// Segments `frame`, whose outermost headers are `parsed`, by the headers that `stated` identifies: the
/// outermost ones, or those of the packet inside a tunnel.
///
/// # Errors
/// [`NotSegmentable::Transport`] if the frame has no such headers; otherwise the errors of [`segment`].
pub fn segment_stated<'f>(
    frame: &'f [u8],
    parsed: &Parsed,
    stated: Stated,
    size: NonZeroU16,
    checksums: Checksums,
) -> Result<Segments<'f>, NotSegmentable> {
    if stated.is(parsed) {
        return segment(frame, parsed, size, checksums);
    }
    let inside = stated.inside(frame, parsed).ok_or(NotSegmentable::Transport)?;
    segment_inside(frame, &inside, size, checksums)
}

#[derive(Clone, Copy, Debug)]
enum Either {
    Tcp(Segmenter),
    Udp(Segmenter<Udp>),
}

impl Either {
    #[inline]
    fn write(&self, head: &mut [u8], part: Part, payload: &[u8]) -> Result<(), BuildError> {
        match self {
            Self::Tcp(segmenter) => segmenter.write(head, part, [payload]),
            Self::Udp(segmenter) => segmenter.write(head, part, [payload]),
        }
    }
}

/// A GSO frame that is being segmented: yields the segments that were not written yet. Returned by [`segment`].
#[derive(Clone, Debug)]
pub struct Segments<'f> {
    segmenter: Either,
    /// The outer headers of a tunnel packet; `None` if the frame is not in a tunnel.
    around: Option<Around>,
    headers: &'f [u8],
    payload: &'f [u8],
    parts: Parts,
}

impl<'f> Segments<'f> {
    /// Gives all segments the same IPv4 identification; see [`Segmenter::with_fixed_id`].
    #[inline]
    #[must_use]
    pub const fn with_fixed_id(mut self) -> Self {
        self.segmenter = match self.segmenter {
            Either::Tcp(segmenter) => Either::Tcp(segmenter.with_fixed_id()),
            Either::Udp(segmenter) => Either::Udp(segmenter.with_fixed_id()),
        };
        self
    }

    /// Gives the outer headers of all segments the same IPv4 identification. Does nothing without a tunnel.
    #[must_use]
    pub fn with_fixed_outer_id(mut self) -> Self {
        self.around = self.around.map(Around::with_fixed_id);
        self
    }

    /// Returns the offset of the outer UDP header of each segment if the tunnel uses UDP with a checksum;
    /// otherwise `None`. Such segments can be sent together as one UDP GSO frame: see
    /// [`Segments::train_headers`].
    #[must_use]
    pub fn datagrams(&self) -> Option<usize> {
        self.around.as_ref()?.datagrams()
    }

    /// Writes the headers of a UDP GSO frame over `out`, a copy of a segment's outer headers up to the end of
    /// the UDP header. The frame contains the last `count` segments that were written. `carried` is the total
    /// number of bytes after their UDP headers. The checksum is partial: the code that later divides the frame
    /// completes it.
    ///
    /// # Errors
    /// [`BuildError::PacketTooLong`] if the frame exceeds an IP packet, [`BuildError::NoRoom`] if `out` is too
    /// short, if [`Segments::datagrams`] returns `None`, or if fewer than `count` segments were written. If
    /// there is an error, nothing is written.
    pub fn train_headers(
        &self,
        out: &mut [u8],
        count: usize,
        carried: usize,
    ) -> Result<(), BuildError> {
        let no_room = BuildError::NoRoom { needed: self.headers.len(), given: out.len() };
        let around = self.around.as_ref().filter(|around| around.datagrams().is_some());
        let first = self.parts.taken().checked_sub(count).ok_or(no_room)?;
        around.ok_or(no_room)?.write_train(out, first, carried)
    }

    /// Returns the number of segments of the frame that were not written yet.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.parts.len()
    }

    /// Returns the length of the headers of each segment, from the first byte of the frame, in bytes.
    #[inline]
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        self.headers.len()
    }

    /// Writes the headers of the next segment at the start of `out` and returns its payload. `None` after the
    /// last segment.
    ///
    /// # Errors
    /// [`BuildError::NoRoom`] if `out` is shorter than [`Segments::header_bytes`]. The next call then writes
    /// the same segment.
    #[inline]
    pub fn next_headers(&mut self, out: &mut [u8]) -> Result<Option<&'f [u8]>, BuildError> {
        // A copy, so that the segment stays the next one if an error occurs.
        let mut parts = self.parts.clone();
        let Some(part) = parts.next() else { return Ok(None) };
        let (needed, given) = (self.headers.len(), out.len());
        let head = out.get_mut(..needed).ok_or(BuildError::NoRoom { needed, given })?;
        head.copy_from_slice(self.headers);
        let payload = &self.payload[part.range()];
        self.segmenter.write(head, part, payload)?;
        if let Some(around) = &self.around {
            around.write(head, part)?;
        }
        self.parts = parts;
        Ok(Some(payload))
    }

    /// Writes the next segment, headers and payload, at the start of `out` and returns its length in bytes.
    /// `None` after the last segment.
    ///
    /// # Errors
    /// [`BuildError::NoRoom`] if the segment does not fit into `out`. The next call then writes the same segment.
    #[inline]
    pub fn next_into(&mut self, out: &mut [u8]) -> Result<Option<usize>, BuildError> {
        let Some(part) = self.parts.clone().next() else { return Ok(None) };
        let (head_bytes, given) = (self.headers.len(), out.len());
        let needed = head_bytes + part.bytes;
        let room = out.get_mut(..needed).ok_or(BuildError::NoRoom { needed, given })?;
        let (head, rest) = room.split_at_mut(head_bytes);
        if let Some(payload) = self.next_headers(head)? {
            rest.copy_from_slice(payload);
        }
        Ok(Some(needed))
    }
}
