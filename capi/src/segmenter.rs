//! The C interface to segmentation: splits GSO frames into the frames that a network carries.

use std::ffi::c_int;
use std::num::NonZeroU16;

use rxo_frame::LinkKind;
use rxo_vnet::{Invalid, segments};
use rxo_wire::build::BuildError;
use rxo_wire::checksum::Summer;
use rxo_wire::segmentation::{Checksums, Segments, segment};
use rxo_wire::{parse, parse_ip};

use crate::border::{
    Failure, RXO_INVALID, RXO_ROOM, RXO_UNSUPPORTED, boxed, bytes, free, guarded, object,
};
use crate::engine::{RXO_ETHERNET, RXO_IP};
use crate::vnet;

/// Splits GSO frames into segments. Use it from one thread at a time.
pub struct RxoSegmenter {
    link: LinkKind,
    summer: Summer,
    work: Work,
}

/// The rest of the current frame, which the caller must keep until the last segment was written.
#[allow(clippy::large_enum_variant, reason = "one for each segmenter, which is in a box already")]
enum Work {
    None,
    Segments(Segments<'static>),
    /// A complete frame, and the offset and value of a checksum that must still be written into it, if there is one.
    Whole(&'static [u8], Option<(usize, u16)>),
}

/// Creates a segmenter. `flags` is RXO_ETHERNET or RXO_IP. NULL on error.
#[unsafe(no_mangle)]
pub extern "C" fn rxo_segmenter_new(flags: u32) -> *mut RxoSegmenter {
    boxed(|| {
        let link = match flags {
            RXO_ETHERNET => LinkKind::Ethernet,
            RXO_IP => LinkKind::RawIp,
            _ => return Err(Failure::invalid(format!("flags {flags:#x}: RXO_ETHERNET or RXO_IP"))),
        };
        Ok(RxoSegmenter { link, summer: Summer::detect(), work: Work::None })
    })
}

/// Frees the segmenter. Does nothing if `s` is NULL.
///
/// # Safety
/// `s` is null or from `rxo_segmenter_new`, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_segmenter_free(s: *mut RxoSegmenter) {
    // SAFETY: the caller's promise.
    unsafe { free(s) }
}

/// Starts a frame of `len` bytes, which must stay valid until the last `rxo_segment_next`. Each segment has
/// `gso_size` bytes of payload, except the last, which has the rest. Returns the number of segments, or an
/// error.
///
/// # Safety
/// `s` is from `rxo_segmenter_new`; `len` bytes can be read at `frame`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_segment(
    s: *mut RxoSegmenter,
    frame: *const u8,
    len: usize,
    gso_size: u16,
) -> c_int {
    let begun = guarded(|| {
        // SAFETY: the caller's promises.
        let (s, frame) = unsafe { (object(s)?, bytes(frame, len)?) };
        s.begin(frame, gso_size)
    });
    begun.unwrap_or_else(|code| code)
}

/// Starts a packet from a TUN or TAP, which has a virtio header of 10 or 12 bytes: a GSO frame is segmented,
/// a partial checksum is completed. The header length in it is not trusted. Returns the same as
/// `rxo_segment`: RXO_INVALID if the header does not match its packet (an unknown kind of GSO or not that of
/// the packet, no segment size, a checksum outside the packet), RXO_UNSUPPORTED if a GSO frame cannot be
/// segmented.
///
/// # Safety
/// As for `rxo_segment`; `header_bytes` can be read at `header`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_segment_vnet(
    s: *mut RxoSegmenter,
    header: *const u8,
    header_bytes: usize,
    packet: *const u8,
    len: usize,
) -> c_int {
    let begun = guarded(|| {
        // SAFETY: the caller's promises.
        let (s, header, packet) =
            unsafe { (object(s)?, bytes(header, header_bytes)?, bytes(packet, len)?) };
        s.begin_vnet(header, packet)
    });
    begun.unwrap_or_else(|code| code)
}

/// Writes the next segment, headers and payload, to `out`. Returns its length in bytes; 0 if there are no
/// more; RXO_ROOM if `room` is too small; the same segment can then be requested again.
///
/// # Safety
/// `s` is from `rxo_segmenter_new`; `room` bytes can be written at `out`; the frame is still there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_segment_next(
    s: *mut RxoSegmenter,
    out: *mut u8,
    room: usize,
) -> c_int {
    let written = guarded(|| {
        // SAFETY: the caller's promise.
        let s = unsafe { object(s) }?;
        if out.is_null() || isize::try_from(room).is_err() {
            return Err(Failure(RXO_INVALID, format!("{room} bytes to write to")));
        }
        // SAFETY: the caller's promise. The bytes are only written, by functions that read none of them.
        let out = unsafe { std::slice::from_raw_parts_mut(out, room) };
        s.next(out)
    });
    written.unwrap_or_else(|code| code)
}

fn unsupported(text: impl Into<String>) -> Failure {
    Failure(RXO_UNSUPPORTED, text.into())
}

impl RxoSegmenter {
    fn begin(&mut self, frame: &'static [u8], size: u16) -> Result<c_int, Failure> {
        self.work = Work::None;
        let size = NonZeroU16::new(size).ok_or_else(|| Failure::invalid("gso_size is 0"))?;
        let parsed = match self.link {
            LinkKind::Ethernet => parse(frame),
            LinkKind::RawIp => parse_ip(frame),
        };
        let parsed = parsed.map_err(|_| unsupported("the headers cannot be read"))?;
        let segments = segment(frame, &parsed, size, Checksums::Complete(self.summer));
        self.take(segments.map_err(|error| unsupported(error.to_string()))?)
    }

    /// Starts a frame with a virtio header, after checking that the header matches the frame. Returns the number of
    /// segments.
    fn begin_vnet(&mut self, header: &[u8], frame: &'static [u8]) -> Result<c_int, Failure> {
        self.work = Work::None;
        let checked = vnet::header(header)?.checked(self.link, frame);
        let (checksum, gso) = checked.map_err(|error| Failure::invalid(error.to_string()))?;
        if let Some(gso) = gso {
            let checksums = Checksums::Complete(self.summer);
            let segments = segments(self.link, frame, (checksum, gso), checksums);
            return self.take(segments.map_err(|error| match error {
                Invalid::Segmentation(why) => unsupported(why.to_string()),
                lie => Failure::invalid(lie.to_string()),
            })?);
        }
        self.work = Work::Whole(frame, vnet::finished(checksum, frame)?);
        Ok(1)
    }

    /// Stores the segments that are to be written, and returns their number.
    fn take(&mut self, segments: Segments<'static>) -> Result<c_int, Failure> {
        let count = c_int::try_from(segments.remaining()).unwrap_or(c_int::MAX);
        self.work = Work::Segments(segments);
        Ok(count)
    }

    fn next(&mut self, out: &mut [u8]) -> Result<c_int, Failure> {
        let no_room = |needed: usize, given: usize| {
            Failure(RXO_ROOM, format!("a segment of {needed} bytes does not fit into {given}"))
        };
        let written = match &mut self.work {
            Work::None => 0,
            Work::Whole(packet, checksum) => {
                let (needed, given) = (packet.len(), out.len());
                let out = out.get_mut(..needed).ok_or_else(|| no_room(needed, given))?;
                out.copy_from_slice(packet);
                if let Some((at, sum)) = *checksum
                    && let Some(field) = out.get_mut(at..at + 2)
                {
                    field.copy_from_slice(&sum.to_be_bytes());
                }
                self.work = Work::None;
                needed
            }
            Work::Segments(segments) => match segments.next_into(out) {
                Ok(Some(written)) => written,
                Ok(None) => 0,
                Err(BuildError::NoRoom { needed, given }) => return Err(no_room(needed, given)),
                Err(error) => return Err(unsupported(error.to_string())),
            },
        };
        Ok(written as c_int)
    }
}

#[cfg(test)]
mod tests {
    use rxo_wire::build::{EthernetHeader, Ipv4Header, Ipv6Header, TcpHeader, UdpHeader};

    use super::*;
    use crate::vnet::{RXO_GSO_TCP4, RXO_GSO_TCP6, RXO_GSO_UDP};

    const PAYLOAD_BYTES: usize = 2_500;

    /// Returns a packet of the transport protocol `protocol` over IPv4, or over IPv6 if `is_v6`.
    fn packet(is_v6: bool, protocol: u8) -> Vec<u8> {
        let transport_bytes = if protocol == 6 { 20 } else { 8 };
        let payload_bytes = transport_bytes + PAYLOAD_BYTES;
        let mut packet = vec![0; if is_v6 { 40 } else { 20 } + payload_bytes];
        let rest = if is_v6 {
            let ip = Ipv6Header { next_header: protocol, payload_bytes, ..Ipv6Header::default() };
            ip.write(&mut packet).unwrap()
        } else {
            let ip = Ipv4Header { protocol, payload_bytes, ..Ipv4Header::default() };
            ip.write(&mut packet).unwrap()
        };
        if protocol == 6 {
            TcpHeader::default().write(rest).unwrap();
        } else {
            let payload_bytes = PAYLOAD_BYTES;
            UdpHeader { payload_bytes, ..UdpHeader::default() }.write(rest).unwrap();
        }
        packet
    }

    /// Returns the offset of the checksum in the transport header, for this kind of GSO frame.
    const fn field_of(kind: u8) -> u16 {
        if kind & 0x7f == RXO_GSO_UDP { 6 } else { 16 }
    }

    /// Segments `frame` with a virtio header that has the fields `header`. Returns the result of the first call and the
    /// number of segments.
    fn begin(link: LinkKind, frame: &[u8], header: (u8, u16, Option<u16>)) -> (c_int, usize) {
        let (kind, size, checksum_start) = header;
        let mut bytes = [0; 10];
        (bytes[0], bytes[1]) = (checksum_start.is_some().into(), kind);
        let field = field_of(kind);
        for (at, value) in [(4, size), (6, checksum_start.unwrap_or(0)), (8, field)] {
            bytes[at..at + 2].copy_from_slice(&u16::to_ne_bytes(value));
        }
        let mut segmenter = RxoSegmenter { link, summer: Summer::detect(), work: Work::None };
        let begun = segmenter.begin_vnet(&bytes, frame.to_vec().leak());
        let mut out = vec![0; frame.len()];
        let mut count = 0;
        while segmenter.next(&mut out).unwrap() > 0 {
            count += 1;
        }
        (begun.unwrap_or_else(|failure| failure.0), count)
    }

    /// Each kind of GSO with each packet, with and without a segment size, with the checksum inside and
    /// outside.
    #[test]
    fn a_header_that_does_not_fit_its_packet_is_refused() {
        let packets = [(false, 6), (true, 6), (false, 17), (true, 17)];
        let fits = |kind: u8, packet: (bool, u8)| match kind & 0x7f {
            RXO_GSO_TCP4 => packet == (false, 6),
            RXO_GSO_TCP6 => packet == (true, 6),
            RXO_GSO_UDP => packet.1 == 17,
            _ => false,
        };
        for of in packets {
            let bytes = packet(of.0, of.1);
            let end = bytes.len() as u16;
            for (kind, size) in (0..=255).flat_map(|kind| [0, 1_000].map(|size| (kind, size))) {
                for start in [None, Some(20), Some(end - 18), Some(end - 17), Some(u16::MAX)] {
                    let last = end - 2 - field_of(kind);
                    let is_outside = start.is_some_and(|start| start > last);
                    let transport = if of.0 { 40 } else { 20 };
                    let is_own = start.is_none_or(|start| start == transport);
                    let expected = match kind & 0x7f {
                        _ if is_outside => (RXO_INVALID, 0),
                        0 => (1, 1),
                        _ if size > 0 && fits(kind, of) && is_own => (3, 3),
                        _ => (RXO_INVALID, 0),
                    };
                    let found = begin(LinkKind::RawIp, &bytes, (kind, size, start));
                    assert_eq!(found, expected, "{kind:#x}, {size}, {start:?} before {of:?}");
                }
            }
        }
    }

    #[test]
    fn a_tap_gives_ethernet() {
        let mut frame = vec![0; 14];
        EthernetHeader { ethertype: 0x0800, ..EthernetHeader::default() }
            .write(&mut frame)
            .unwrap();
        frame.extend(packet(false, 6));
        assert_eq!(begin(LinkKind::Ethernet, &frame, (RXO_GSO_TCP4, 1_000, None)), (3, 3));
        let refused = (RXO_INVALID, 0);
        assert_eq!(begin(LinkKind::RawIp, &frame, (RXO_GSO_TCP4, 1_000, None)), refused);
        assert_eq!(begin(LinkKind::Ethernet, &frame[14..], (RXO_GSO_TCP4, 1_000, None)), refused);
    }

    #[test]
    fn what_fits_its_header_may_still_be_unsupported() {
        let mut fragment = packet(false, 17);
        fragment[6] = 0x20;
        assert_eq!(begin(LinkKind::RawIp, &fragment, (RXO_GSO_UDP, 1_000, None)), (RXO_INVALID, 0));
        let mut empty = packet(false, 6)[..40].to_vec();
        empty[3] = 40;
        empty[2] = 0;
        let unsupported = (RXO_UNSUPPORTED, 0);
        assert_eq!(begin(LinkKind::RawIp, &empty, (RXO_GSO_TCP4, 1_000, None)), unsupported);
    }
}
