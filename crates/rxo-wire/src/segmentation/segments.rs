//! The frames of a GSO frame whose bytes stand together.

use core::num::NonZeroU16;

use super::{Checksums, NotSegmentable, Part, Parts, Segmenter, Udp, parts};
use crate::build::BuildError;
use crate::{Parsed, Transport};

/// Begins to segment `frame`, whose headers are `parsed`, into frames with `size` bytes of payload each; the
/// last may have less. Padding behind the packet is left out. A frame with at most `size` bytes of payload
/// becomes one segment.
///
/// # Errors
/// [`NotSegmentable`] says why; the frame then goes as it is or not at all.
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
    Ok(Segments { segmenter, headers, payload, parts: parts(payload.len(), size) })
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

/// The segments of a GSO frame that were not taken yet; made by [`segment`].
#[derive(Clone, Debug)]
pub struct Segments<'f> {
    segmenter: Either,
    headers: &'f [u8],
    payload: &'f [u8],
    parts: Parts,
}

impl<'f> Segments<'f> {
    /// These segments with one IPv4 identification for all; see [`Segmenter::with_fixed_id`].
    #[inline]
    #[must_use]
    pub const fn with_fixed_id(mut self) -> Self {
        self.segmenter = match self.segmenter {
            Either::Tcp(segmenter) => Either::Tcp(segmenter.with_fixed_id()),
            Either::Udp(segmenter) => Either::Udp(segmenter.with_fixed_id()),
        };
        self
    }

    /// How many segments are left.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.parts.len()
    }

    /// The length of the headers of each segment from the first byte of the frame, in bytes.
    #[inline]
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        self.headers.len()
    }

    /// Writes the headers of the next segment at the start of `out` and returns its payload. `None` if
    /// there is no more.
    ///
    /// # Errors
    /// [`BuildError::NoRoom`] if `out` is shorter than [`Segments::header_bytes`]. The segment is not taken
    /// then.
    #[inline]
    pub fn next_headers(&mut self, out: &mut [u8]) -> Result<Option<&'f [u8]>, BuildError> {
        let mut parts = self.parts.clone();
        let Some(part) = parts.next() else { return Ok(None) };
        let (needed, given) = (self.headers.len(), out.len());
        let head = out.get_mut(..needed).ok_or(BuildError::NoRoom { needed, given })?;
        head.copy_from_slice(self.headers);
        let payload = &self.payload[part.range()];
        self.segmenter.write(head, part, payload)?;
        self.parts = parts;
        Ok(Some(payload))
    }

    /// Writes the next segment, headers and payload, at the start of `out` and returns its length in
    /// bytes. `None` if there is no more.
    ///
    /// # Errors
    /// [`BuildError::NoRoom`] if the segment does not fit into `out`. It is not taken then.
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
