//! Restores records from a merged packet and its note.

use core::ops::Range;
use std::rc::Rc;

use rxo_capture::SharedBytes;
use rxo_wire::Offsets;

use super::header::{Headers, Plan, Position};
use super::{
    BadNote, CHECK_BYTES, Check, Differs, MAX_HEADER_BYTES, MAX_PAYLOAD_BYTES, Merged, Original,
    Outer, Reader, Shape, patch,
};

/// A record that was restored from a merged packet and its note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The captured bytes of the record. All records of a note share one chunk.
    pub bytes: SharedBytes,
    /// The length of the record on the wire, in bytes.
    pub original_bytes: u32,
    /// The time of the record, in nanoseconds since 1970 UTC.
    pub at_ns: u64,
    /// The position of the record in the file, from 0.
    pub place: u64,
}

/// Restores the records of `merged`, in the order of their payloads.
///
/// # Errors
/// If the note is damaged, or belongs to another packet.
pub fn read(merged: Merged<'_>, note: &[u8]) -> Result<Vec<Restored>, BadNote> {
    let body_bytes = note.len().saturating_sub(CHECK_BYTES);
    let (body, expected) = note.split_at(body_bytes);
    let mut note = Reader::new(body);
    let outline = Outline::read(merged, &mut note)?;
    let plan = Plan::new(merged.bytes, (outline.at, outline.outer), outline.shape)?;
    let sizes = sizes(&outline, plan.payload().len(), &mut note)?;
    let (bytes, mut found) = segments(&plan, merged.at_ns, &outline, &sizes, &mut note)?;
    if !note.is_at_end() {
        return Err(BadNote("says more than the packet has segments"));
    }
    found.reverse();
    let mut check = Check::default();
    for one in &found {
        check.add(&one.as_original(&bytes), merged.expected_place);
    }
    if check.bytes() != *expected {
        return Err(BadNote("does not fit the packet: one of them was changed"));
    }
    let chunk = Rc::new(bytes);
    Ok(found.into_iter().map(|one| one.restored(&chunk)).collect())
}

/// A restored record while the records before it are still being read. `range` is the range of the record's
/// bytes in the chunk that all records of the note share.
struct PendingRecord {
    range: Range<usize>,
    original_bytes: u32,
    at_ns: u64,
    place: u64,
}

impl PendingRecord {
    fn as_original<'a>(&self, all: &'a [u8]) -> Original<'a> {
        let bytes = all.get(self.range.clone()).unwrap_or_default();
        let Self { original_bytes, at_ns, place, .. } = *self;
        Original { bytes, network: 0, original_bytes, at_ns, place }
    }

    fn restored(self, chunk: &Rc<Vec<u8>>) -> Restored {
        let Self { range, original_bytes, at_ns, place } = self;
        Restored { bytes: SharedBytes::new(chunk, range), original_bytes, at_ns, place }
    }
}

/// The contents of a note before its segments.
struct Outline {
    last_place: u64,
    segments: usize,
    at: Offsets,
    outer: Option<Outer>,
    shape: Shape,
}

impl Outline {
    fn read(merged: Merged<'_>, note: &mut Reader<'_>) -> Result<Self, BadNote> {
        let last_place = merged.expected_place.wrapping_add(note.signed()? as u64);
        // Every segment has payload, so a valid note has no more segments than bytes. This bounds the memory.
        let segments = note.size(merged.bytes.len().min(MAX_PAYLOAD_BYTES))?;
        let network = note.size(MAX_HEADER_BYTES)? as u32;
        let transport = network + note.size(MAX_HEADER_BYTES)? as u32;
        let payload = transport + note.size(MAX_HEADER_BYTES)? as u32;
        let shape = Shape(note.byte()?);
        if !shape.is_known() || segments == 0 {
            return Err(BadNote("is of a kind that this version does not know"));
        }
        let at = Offsets { network, transport, payload, end: merged.bytes.len() as u32 };
        let outer = match shape.has(Shape::TUNNEL) {
            false => None,
            true => {
                let mut place = || note.size(network as usize).map(|place| place as u32);
                Some(Outer { network: place()?, transport: place()? })
            }
        };
        Ok(Self { last_place, segments, at, outer, shape })
    }
}

/// Reads and returns the payload sizes of all segments in bytes. The sum of the sizes is the payload length of
/// the packet.
fn sizes(outline: &Outline, mut rest: usize, note: &mut Reader<'_>) -> Result<Vec<usize>, BadNote> {
    let all_but_last = outline.segments - 1;
    let mut sizes = Vec::with_capacity(outline.segments);
    for number in 0..all_but_last {
        let size = match sizes.last() {
            Some(first) if outline.shape.has(Shape::REGULAR) => *first,
            _ => note.size(rest)?,
        };
        rest = rest.checked_sub(size).ok_or(BadNote("speaks of more payload than there is"))?;
        if size == 0 || rest < all_but_last - number {
            return Err(BadNote("speaks of segments without payload"));
        }
        sizes.push(size);
    }
    sizes.push(rest);
    Ok(sizes)
}

/// Restores the records, from the last to the first. Returns the chunk with the bytes of all records, and the
/// records.
fn segments(
    plan: &Plan<'_>,
    at_ns: u64,
    outline: &Outline,
    sizes: &[usize],
    note: &mut Reader<'_>,
) -> Result<(Vec<u8>, Vec<PendingRecord>), BadNote> {
    let most_bytes = plan.payload().len() + sizes.len() * (plan.link().len() + plan.header_bytes());
    let (mut all, mut found) = (Vec::with_capacity(most_bytes), Vec::with_capacity(sizes.len()));
    let (mut link, header) = (Headers(plan.link().to_vec()), plan.merged_header());
    let mut reader = SegmentReader { plan, shape: outline.shape, header };
    let (mut at_ns, mut place) = (at_ns, outline.last_place.wrapping_add(1));
    let mut payload_at = plan.payload().len();
    for (number, &payload_bytes) in sizes.iter().enumerate().rev() {
        payload_at -= payload_bytes;
        let from_end = sizes.len() - 1 - number;
        let position = Position { number, from_end, payload_at, payload_bytes };
        let differs = Differs(note.byte()?);
        at_ns = at_ns.wrapping_sub(reader.time(differs, note)? as u64);
        let between = if differs.has(Differs::PLACE) { note.signed()? } else { 0 };
        place = place.wrapping_sub(1).wrapping_sub(between as u64);
        plan.predict_link(&mut link, position);
        if differs.has(Differs::LINK) {
            let bytes = note.size(MAX_HEADER_BYTES)?;
            link.0.clear();
            link.0.extend_from_slice(note.bytes(bytes)?);
        }
        let start = all.len();
        all.extend_from_slice(&link.0);
        reader.put_bytes(differs, position, note, &mut all)?;
        let original_bytes = original_bytes(all.len() - start, differs, note)?;
        found.push(PendingRecord { range: start..all.len(), original_bytes, at_ns, place });
    }
    Ok((all, found))
}

fn original_bytes(
    captured: usize,
    differs: Differs,
    note: &mut Reader<'_>,
) -> Result<u32, BadNote> {
    let more = if differs.has(Differs::ORIGINAL_BYTES) { note.signed()? } else { 0 };
    let bytes = (captured as i64).checked_add(more).map(u32::try_from);
    bytes.and_then(Result::ok).ok_or(BadNote("speaks of a packet of impossible length"))
}

/// Reads the segments of a note, from the last to the first.
struct SegmentReader<'a> {
    plan: &'a Plan<'a>,
    shape: Shape,
    /// The header of the segment that was read last, which comes after the current segment in the stream; at
    /// first the header of the merged packet.
    header: Headers,
}

impl SegmentReader<'_> {
    /// Reads and returns the time from this segment to the next, in nanoseconds.
    fn time(&self, differs: Differs, note: &mut Reader<'_>) -> Result<i64, BadNote> {
        if !differs.has(Differs::TIME) {
            return Ok(0);
        }
        Ok(note.signed()?.wrapping_mul(self.shape.unit_ns()))
    }

    /// Appends the captured bytes of a record that follow the link header.
    fn put_bytes(
        &mut self,
        differs: Differs,
        position: Position,
        note: &mut Reader<'_>,
        to: &mut Vec<u8>,
    ) -> Result<(), BadNote> {
        let end = position.payload_at + position.payload_bytes;
        let payload = self.plan.payload().get(position.payload_at..end).unwrap_or_default();
        self.put_header(differs, position, payload, note, to)?;
        to.extend_from_slice(payload);
        if differs.has(Differs::PADDING) {
            let count = note.size(usize::MAX)?;
            to.extend_from_slice(note.bytes(count)?);
        }
        Ok(())
    }

    /// Appends the IP and TCP header of a record, with its checksums.
    fn put_header(
        &mut self,
        differs: Differs,
        position: Position,
        payload: &[u8],
        note: &mut Reader<'_>,
        to: &mut Vec<u8>,
    ) -> Result<(), BadNote> {
        let (plan, header) = (self.plan, &mut self.header);
        plan.predict(header, position);
        if differs.has(Differs::HEADER) {
            patch::apply(&mut header.0, note)?;
        }
        let ip_checksum = match differs.has(Differs::IP_CHECKSUM) {
            true => note.pair()?,
            false => plan.ip_checksum(header),
        };
        let tcp_checksum = match differs.has(Differs::TCP_CHECKSUM) {
            true => note.pair()?,
            false => plan.tcp_checksum(header, payload),
        };
        let start = to.len();
        to.extend_from_slice(&header.0);
        let mut put = |at: usize, field: [u8; 2]| {
            if let Some(place) = to.get_mut(start + at..).and_then(|rest| rest.first_chunk_mut()) {
                *place = field;
            }
        };
        if let Some(at) = plan.ip_checksum_at() {
            put(at, ip_checksum);
        }
        put(plan.tcp_checksum_at(), tcp_checksum);
        Ok(())
    }
}
