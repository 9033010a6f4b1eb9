//! Writes the note of an aggregate from its records.

use core::ops::Range;

use rxo_wire::{Offsets, class_and_length};

use super::header::{Headers, Plan, Position};
use super::{
    BadNote, Check, Differs, Merged, Original, Outer, Shape, patch, put_number, put_signed,
};

/// Appends the note of the aggregate `merged`, which consists of `records`, to `note`. The pair contains the
/// offsets of the headers of `merged` and, if there is a tunnel, the offsets of the tunnel headers before them.
///
/// # Errors
/// If the payloads of `records` do not add up to the payload of the packet.
pub fn write(
    merged: Merged<'_>,
    (at, outer): (Offsets, Option<Outer>),
    records: &[Original<'_>],
    note: &mut Vec<u8>,
) -> Result<(), BadNote> {
    let last = records.last().ok_or(BadNote("belongs to no record"))?;
    let sizes = payload_sizes(at, records)?;
    let shape = shape(merged.at_ns, records, &sizes, outer);
    let plan = Plan::new(merged.bytes, (at, outer), shape)?;
    if sizes.iter().sum::<usize>() != plan.payload().len() {
        return Err(NOT_ITS_RECORDS);
    }
    put_signed(note, last.place.wrapping_sub(merged.expected_place) as i64);
    put_number(note, records.len() as u64);
    put_number(note, at.network.into());
    put_number(note, at.ip_header().len() as u64);
    put_number(note, at.transport_header().len() as u64);
    note.push(shape.0);
    for place in outer.into_iter().flat_map(|outer| [outer.network, outer.transport]) {
        put_number(note, place.into());
    }
    put_sizes(shape, &sizes, note);
    put_segments(&plan, merged.at_ns, shape, records, &sizes, note)?;
    let mut check = Check::default();
    records.iter().for_each(|record| check.add(record, merged.expected_place));
    note.extend_from_slice(&check.bytes());
    Ok(())
}

const NOT_ITS_RECORDS: BadNote = BadNote("belongs to other records");

/// Returns the payload length of each record, in bytes, from its IP header.
fn payload_sizes(at: Offsets, records: &[Original<'_>]) -> Result<Vec<usize>, BadNote> {
    let headers = at.payload.checked_sub(at.network).ok_or(NOT_ITS_RECORDS)? as usize;
    let size = |record: &Original<'_>| {
        let ip = record.bytes.get(record.network..)?;
        let (_, packet_bytes) = class_and_length(ip)?;
        (packet_bytes <= ip.len()).then(|| packet_bytes.checked_sub(headers))?
    };
    records.iter().map(|record| size(record).ok_or(NOT_ITS_RECORDS)).collect()
}

fn shape(at_ns: u64, records: &[Original<'_>], sizes: &[usize], outer: Option<Outer>) -> Shape {
    let all_but_last = sizes.split_last().map_or(sizes, |(_, rest)| rest);
    let ids_differ = |network: fn(&Original<'_>, Option<Outer>) -> usize| match records {
        [first, second, ..] => {
            let [first, second] = [first, second].map(|it| ipv4_id(it, network(it, outer)));
            first != second
        }
        _ => false,
    };
    let outer_network =
        |_: &Original<'_>, outer: Option<Outer>| outer.map_or(0, |outer| outer.network as usize);
    let after = records.iter().skip(1).map(|record| record.at_ns).chain([at_ns]);
    let mut gaps = records.iter().zip(after).map(|(record, after)| nanos(record.at_ns, after));
    Shape::default()
        .with(Shape::REGULAR, all_but_last.windows(2).all(|pair| pair[0] == pair[1]))
        .with(Shape::COUNTING_ID, ids_differ(|record, _| record.network))
        .with(Shape::TUNNEL, outer.is_some())
        .with(Shape::COUNTING_OUTER_ID, outer.is_some() && ids_differ(outer_network))
        .with(Shape::MICROS, gaps.all(|gap| gap % 1_000 == 0))
}

fn ipv4_id<'a>(record: &Original<'a>, network: usize) -> Option<&'a [u8]> {
    record.bytes.get(network + 4..network + 6)
}

/// Returns the time from `from` to `to` in nanoseconds. The result is negative if the capture's clock was set
/// back.
const fn nanos(from: u64, to: u64) -> i64 {
    to.wrapping_sub(from) as i64
}

/// Writes the sizes of all payloads except the last one. The last size follows from the other sizes and the
/// length of the packet.
fn put_sizes(shape: Shape, sizes: &[usize], note: &mut Vec<u8>) {
    let all_but_last = sizes.split_last().map_or(sizes, |(_, rest)| rest);
    let written = if shape.has(Shape::REGULAR) { 1 } else { all_but_last.len() };
    all_but_last.iter().take(written).for_each(|size| put_number(note, *size as u64));
}

fn put_segments(
    plan: &Plan<'_>,
    at_ns: u64,
    shape: Shape,
    records: &[Original<'_>],
    sizes: &[usize],
    note: &mut Vec<u8>,
) -> Result<(), BadNote> {
    let (predicted, header) = (plan.merged_header(), Headers::default());
    let link = Headers(plan.link().to_vec());
    let mut writer =
        SegmentWriter { plan, shape, at_ns, predicted, header, link, after: None, note };
    let mut payload_at: usize = sizes.iter().sum();
    for (number, (record, &payload_bytes)) in records.iter().zip(sizes).enumerate().rev() {
        payload_at -= payload_bytes;
        let from_end = records.len() - 1 - number;
        writer.put(record, Position { number, from_end, payload_at, payload_bytes })?;
    }
    Ok(())
}

/// Writes the segments of an aggregate into its note, from the last to the first.
struct SegmentWriter<'a, 'n> {
    plan: &'a Plan<'a>,
    shape: Shape,
    /// The time of the merged packet, in nanoseconds since 1970 UTC.
    at_ns: u64,
    /// The header of the segment that was written last, which comes after the current segment in the stream; at
    /// first the header of the merged packet. The header of the current segment is predicted from this header.
    predicted: Headers,
    /// Memory for the header of the segment that is being written.
    header: Headers,
    /// The link header of the segment that was written last.
    link: Headers,
    after: Option<Original<'a>>,
    note: &'n mut Vec<u8>,
}

impl<'a> SegmentWriter<'a, '_> {
    fn put(&mut self, record: &Original<'a>, position: Position) -> Result<(), BadNote> {
        let (start, payload) = (record.network, record.network + self.plan.header_bytes());
        let end = payload + position.payload_bytes;
        let part = |range: Range<usize>| record.bytes.get(range).ok_or(NOT_ITS_RECORDS);
        let (link, header, payload) = (part(0..start)?, part(start..payload)?, part(payload..end)?);
        let padding = part(end..record.bytes.len())?;
        let flags_at = self.note.len();
        self.note.push(0);
        let differs = self.put_arrival(record)
            | self.put_link(link, position)
            | self.put_header(header, payload, position)
            | self.put_bytes(padding, !padding.is_empty(), Differs::PADDING)
            | self.put_original_bytes(record);
        if let Some(flags) = self.note.get_mut(flags_at) {
            *flags = differs.0;
        }
        self.after = Some(*record);
        Ok(())
    }

    /// Writes time and position of the record relative to the next segment, or to the merged packet for the
    /// last segment. Returns the properties that differ from the prediction.
    fn put_arrival(&mut self, record: &Original<'_>) -> Differs {
        let after_ns = self.after.map_or(self.at_ns, |after| after.at_ns);
        let time = nanos(record.at_ns, after_ns) / self.shape.unit_ns();
        let between = self
            .after
            .map_or(0, |after| after.place.wrapping_sub(record.place).wrapping_sub(1) as i64);
        self.put_distance(time, Differs::TIME) | self.put_distance(between, Differs::PLACE)
    }

    fn put_distance(&mut self, distance: i64, bit: Differs) -> Differs {
        if distance == 0 {
            return Differs::default();
        }
        put_signed(self.note, distance);
        bit
    }

    fn put_link(&mut self, link: &[u8], position: Position) -> Differs {
        self.plan.predict_link(&mut self.link, position);
        let differs = self.link.0 != link;
        self.link.0.clear();
        self.link.0.extend_from_slice(link);
        self.put_bytes(link, differs, Differs::LINK)
    }

    /// Writes the header of a record and its checksums. The header then becomes the prediction for the
    /// previous segment. Returns the properties that differ from the prediction.
    fn put_header(&mut self, header: &[u8], payload: &[u8], position: Position) -> Differs {
        let plan = self.plan;
        plan.predict(&mut self.predicted, position);
        let own = &mut self.header;
        own.0.clear();
        own.0.extend_from_slice(header);
        let tcp_checksum = own.pair(plan.tcp_checksum_at());
        let ip_checksum = plan.ip_checksum_at().map(|at| own.pair(at));
        plan.clear_checksums(own);
        let mut differs = Differs::default();
        if patch::write(&self.predicted.0, &own.0, self.note) {
            differs = differs | Differs::HEADER;
        }
        if let Some(checksum) = ip_checksum.filter(|field| *field != plan.ip_checksum(own)) {
            self.note.extend_from_slice(&checksum);
            differs = differs | Differs::IP_CHECKSUM;
        }
        if tcp_checksum != plan.tcp_checksum(own, payload) {
            self.note.extend_from_slice(&tcp_checksum);
            differs = differs | Differs::TCP_CHECKSUM;
        }
        std::mem::swap(&mut self.predicted, &mut self.header);
        differs
    }

    fn put_bytes(&mut self, bytes: &[u8], differ: bool, bit: Differs) -> Differs {
        if !differ {
            return Differs::default();
        }
        put_number(self.note, bytes.len() as u64);
        self.note.extend_from_slice(bytes);
        bit
    }

    fn put_original_bytes(&mut self, record: &Original<'_>) -> Differs {
        let more = i64::from(record.original_bytes) - record.bytes.len() as i64;
        self.put_distance(more, Differs::ORIGINAL_BYTES)
    }
}
