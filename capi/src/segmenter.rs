//! From a GSO frame to the frames that a network carries.

use std::ffi::c_int;
use std::num::NonZeroU16;

use rxo_wire::build::BuildError;
use rxo_wire::checksum::Summer;
use rxo_wire::segmentation::{Checksums, Segments, segment};
use rxo_wire::{parse, parse_ip};

use crate::border::{
    Failure, RXO_INVALID, RXO_ROOM, RXO_UNSUPPORTED, boxed, bytes, free, guarded, object,
};
use crate::engine::RXO_IP;
use crate::vnet::{self, RXO_GSO_NONE};

/// Cuts GSO frames into segments, one after the other. It belongs to one thread at a time.
pub struct RxoSegmenter {
    is_ip: bool,
    summer: Summer,
    work: Work,
}

/// What is left of the frame in hand, which the caller keeps until it is done.
enum Work {
    None,
    Segments(Segments<'static>),
    /// A frame that is complete but for its checksum: where it goes, and its value.
    Whole(&'static [u8], Option<(usize, u16)>),
}

/// Makes a segmenter. `flags` is RXO_ETHERNET or RXO_IP. NULL on error.
#[unsafe(no_mangle)]
pub extern "C" fn rxo_segmenter_new(flags: u32) -> *mut RxoSegmenter {
    boxed(|| match flags {
        0 | RXO_IP => {
            let (is_ip, summer) = (flags == RXO_IP, Summer::detect());
            Ok(RxoSegmenter { is_ip, summer, work: Work::None })
        }
        _ => Err(Failure::invalid(format!("flags {flags:#x}: RXO_ETHERNET or RXO_IP"))),
    })
}

/// Frees the segmenter. NULL is nothing.
///
/// # Safety
/// `s` is null or from `rxo_segmenter_new`, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_segmenter_free(s: *mut RxoSegmenter) {
    // SAFETY: the caller's promise.
    unsafe { free(s) }
}

/// Begins a frame of `len` bytes, which must stay until the last `rxo_segment_next`. Each segment has `gso_size`
/// bytes of payload, the last the rest. Returns how many segments there are, or an error.
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

/// Begins a packet as a TUN or TAP gives it, behind a virtio header of 10 or 12 bytes: a GSO frame is segmented,
/// a partial checksum is completed. The header's length of headers is not trusted. Returns as `rxo_segment`.
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
        s.work = Work::None;
        let vnet = vnet::read(header)?;
        match vnet.gso {
            RXO_GSO_NONE => {
                s.work = Work::Whole(packet, vnet::finished(&vnet, packet)?);
                Ok(1)
            }
            _ => s.begin(packet, vnet.gso_size),
        }
    });
    begun.unwrap_or_else(|code| code)
}

/// Writes the next segment, headers and payload, to `out`. Returns its length in bytes; 0 if there is no more;
/// RXO_ROOM if `room` is too small, and then the segment can be asked for again.
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

impl RxoSegmenter {
    fn begin(&mut self, frame: &'static [u8], size: u16) -> Result<c_int, Failure> {
        self.work = Work::None;
        let unsupported = |text: String| Failure(RXO_UNSUPPORTED, text);
        let size = NonZeroU16::new(size).ok_or_else(|| Failure::invalid("gso_size is 0"))?;
        let parsed = if self.is_ip { parse_ip(frame) } else { parse(frame) };
        let parsed = parsed.map_err(|_| unsupported("the headers cannot be read".to_owned()))?;
        let segments = segment(frame, &parsed, size, Checksums::Complete(self.summer))
            .map_err(|error| unsupported(error.to_string()))?;
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
                Err(error) => return Err(Failure(RXO_UNSUPPORTED, error.to_string())),
            },
        };
        Ok(written as c_int)
    }
}
