//! The form of an aggregate, and its segmentation.
//!
//! Both follow RFC 791, 8200 and 9293 and a kernel's segmentation, independent of the engine's code.

use super::checksum::{internet_checksum, pseudo_header_sum, transport_checksum};
use super::read::Segment;

const TCP: u8 = 6;
const UDP: u8 = 17;
const FIN_AND_PSH: u8 = 0x09;

/// The contents of an aggregate's TCP checksum field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumField {
    /// The folded sum of the pseudo-header.
    Seed,
    /// The checksum of the whole segment.
    Complete,
    /// The checksum of the first segment, unchanged.
    Untouched,
}

/// Builds the packet that merges `segments`, link header first. `first` is the frame of the first segment.
///
/// SEQ is the first segment's; acknowledgement number, window and the aligned timestamp are the last's; flags
/// are the union of all. The UDP length of merged datagrams is that of all.
#[must_use]
pub fn merge(first: &[u8], segments: &[Segment], field: ChecksumField) -> Vec<u8> {
    let head = &segments[0];
    let mut packet = first[..head.payload_at].to_vec();
    segments.iter().for_each(|segment| packet.extend_from_slice(&segment.payload));
    if head.udp_length.is_none() {
        merge_tcp(&mut packet, segments);
    }
    let outer = head.outer.as_ref().map(|outer| &outer.segment);
    [Some(head), outer].into_iter().flatten().for_each(|shape| write_lengths(&mut packet, shape));
    // The outer checksum covers the inner one.
    for shape in [Some(head), outer.filter(|outer| outer.checksum != 0)].into_iter().flatten() {
        match field {
            ChecksumField::Seed => write_seed(&mut packet, shape),
            ChecksumField::Complete => write_checksum(&mut packet, shape),
            ChecksumField::Untouched => {}
        }
    }
    packet
}

fn write_seed(packet: &mut [u8], shape: &Segment) {
    let (start, at) = (shape.transport_at, checksum_at(shape));
    let bytes = packet.len() - start;
    let seed = pseudo_header_sum(&shape.ends.addresses, protocol(shape), bytes);
    packet[at..at + 2].copy_from_slice(&seed.to_be_bytes());
}

fn merge_tcp(packet: &mut [u8], segments: &[Segment]) {
    let (head, last) = (&segments[0], &segments[segments.len() - 1]);
    let tcp = head.transport_at;
    packet[tcp + 8..tcp + 12].copy_from_slice(&last.ack.to_be_bytes());
    packet[tcp + 14..tcp + 16].copy_from_slice(&last.window.to_be_bytes());
    packet[tcp + 13] |= segments.iter().fold(0, |all, segment| all | segment.flags as u8);
    if last.options.len() == 12 && last.options[..4] == [1, 1, 8, 10] {
        packet[tcp + 20..tcp + 32].copy_from_slice(&last.options);
    }
}

/// Returns the offset of the transport checksum of a packet like `shape`.
#[must_use]
pub fn checksum_at(shape: &Segment) -> usize {
    shape.transport_at + if shape.udp_length.is_some() { 6 } else { 16 }
}

const fn protocol(shape: &Segment) -> u8 {
    if shape.udp_length.is_some() { UDP } else { TCP }
}

/// Splits `packet` into segments of `size` payload bytes like a kernel's segmentation. Only the
/// last has PSH and FIN. SEQ advances, and each segment has its own lengths and checksums. The IPv4
/// ID counts up unless `fixed_id`. `shape` locates the headers of the packet.
#[must_use]
pub fn resegment(packet: &[u8], shape: &Segment, size: usize, fixed_id: bool) -> Vec<Vec<u8>> {
    resegment_with(packet, shape, size, FixedIds { own: fixed_id, outer: false })
}

/// The IPv4 IDs that are the same in all segments.
#[derive(Clone, Copy, Debug)]
pub struct FixedIds {
    /// `true` if the segment's own IP header has a fixed ID.
    pub own: bool,
    /// `true` if the tunnel's IP header has a fixed ID.
    pub outer: bool,
}

/// Splits `packet` as [`resegment`] does, also inside a tunnel.
#[must_use]
pub fn resegment_with(
    packet: &[u8],
    shape: &Segment,
    size: usize,
    fixed: FixedIds,
) -> Vec<Vec<u8>> {
    let outer = shape.outer.as_ref().map(|outer| &outer.segment);
    let (header, payload) = packet.split_at(shape.payload_at);
    let pieces = payload.chunks(size).count();
    let tcp = shape.transport_at;
    let mut segments = Vec::with_capacity(pieces);
    for (index, piece) in payload.chunks(size).enumerate() {
        let mut segment = [header, piece].concat();
        if shape.udp_length.is_none() {
            let seq = word(header, tcp + 4).wrapping_add((index * size) as u32);
            segment[tcp + 4..tcp + 8].copy_from_slice(&seq.to_be_bytes());
            if index + 1 < pieces {
                segment[tcp + 13] &= !FIN_AND_PSH;
            }
        }
        for (shape, fixed_id) in [(Some(shape), fixed.own), (outer, fixed.outer)] {
            let Some(shape) = shape else { continue };
            if !shape.v6 && !fixed_id {
                let at = shape.network_at + 4;
                let id = u16::from_be_bytes([header[at], header[at + 1]]);
                let id = id.wrapping_add(index as u16);
                segment[at..at + 2].copy_from_slice(&id.to_be_bytes());
            }
            write_lengths(&mut segment, shape);
        }
        for shape in [Some(shape), outer.filter(|outer| outer.checksum != 0)].into_iter().flatten()
        {
            write_checksum(&mut segment, shape);
        }
        segments.push(segment);
    }
    segments
}

fn write_lengths(packet: &mut [u8], shape: &Segment) {
    let ip = shape.network_at;
    let length = packet.len() - ip;
    if shape.udp_length.is_some() {
        let at = shape.transport_at + 4;
        let length = packet.len() - shape.transport_at;
        packet[at..at + 2].copy_from_slice(&(length as u16).to_be_bytes());
    }
    if shape.v6 {
        packet[ip + 4..ip + 6].copy_from_slice(&said(length - 40));
        return;
    }
    packet[ip + 2..ip + 4].copy_from_slice(&said(length));
    packet[ip + 10..ip + 12].copy_from_slice(&[0, 0]);
    let checksum = internet_checksum(&packet[ip..shape.transport_at]);
    packet[ip + 10..ip + 12].copy_from_slice(&checksum.to_be_bytes());
}

/// Encodes a length; 0 if it does not fit into the field.
fn said(bytes: usize) -> [u8; 2] {
    u16::try_from(bytes).unwrap_or(0).to_be_bytes()
}

fn write_checksum(packet: &mut [u8], shape: &Segment) {
    let (start, at) = (shape.transport_at, checksum_at(shape));
    packet[at..at + 2].copy_from_slice(&[0, 0]);
    let checksum = transport_checksum(&shape.ends.addresses, protocol(shape), &packet[start..]);
    // In UDP a checksum of 0 means that there is none, so the other zero is written.
    let checksum = if checksum == 0 && shape.udp_length.is_some() { 0xffff } else { checksum };
    packet[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use rxo_frame::LinkKind;

    use super::{ChecksumField, merge, resegment};
    use crate::naive::{Reading, Segment, read};
    use crate::{Packet, seg};

    fn segment(packet: &Packet) -> Segment {
        match read(&packet.frame(), LinkKind::Ethernet) {
            Reading::Segment(segment) => *segment,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_merged_comes_apart_again() {
        for base in [seg(), seg().v6().ts(1, 2).vlan(3)] {
            let packets = [
                base.clone().id(8),
                base.clone().seq(200).id(9),
                base.seq(300).id(10).len(7).psh(),
            ];
            let segments: Vec<_> = packets.iter().map(segment).collect();
            let bytes: Vec<_> = packets.iter().map(Packet::bytes).collect();
            let merged = merge(&bytes[0], &segments, ChecksumField::Complete);
            assert_eq!(merged.len(), segments[0].payload_at + 207);
            assert_eq!(resegment(&merged, &segments[0], 100, false), bytes);
        }
    }
}
