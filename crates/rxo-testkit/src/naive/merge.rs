//! What an aggregate must look like, and cutting it into segments again.
//!
//! Both are written from RFC 791, 8200 and 9293 and from what segmentation offload does in a
//! kernel, without a look at the engine.

use super::checksum::{internet_checksum, pseudo_header_sum, transport_checksum};
use super::read::Segment;

const TCP: u8 = 6;
const FIN_AND_PSH: u8 = 0x09;

/// What stands in an aggregate's TCP checksum field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumField {
    /// The pseudo-header's folded sum.
    Seed,
    /// The checksum of the whole segment.
    Complete,
    /// Not looked at: the first segment's own.
    Untouched,
}

/// The packet that stands for `segments`, link header first. `first` is the first one's frame.
///
/// SEQ is the first's; acknowledgement number, window and the aligned timestamp the last's; flags
/// are those of all together.
#[must_use]
pub fn merge(first: &[u8], segments: &[Segment], field: ChecksumField) -> Vec<u8> {
    let (head, last) = (&segments[0], &segments[segments.len() - 1]);
    let mut packet = first[..head.payload_at].to_vec();
    segments.iter().for_each(|segment| packet.extend_from_slice(&segment.payload));
    let tcp = head.transport_at;
    packet[tcp + 8..tcp + 12].copy_from_slice(&last.ack.to_be_bytes());
    packet[tcp + 14..tcp + 16].copy_from_slice(&last.window.to_be_bytes());
    packet[tcp + 13] |= segments.iter().fold(0, |all, segment| all | segment.flags as u8);
    if last.options.len() == 12 && last.options[..4] == [1, 1, 8, 10] {
        packet[tcp + 20..tcp + 32].copy_from_slice(&last.options);
    }
    write_lengths(&mut packet, head);
    match field {
        ChecksumField::Seed => {
            let seed = pseudo_header_sum(&head.ends.addresses, TCP, packet.len() - tcp);
            packet[tcp + 16..tcp + 18].copy_from_slice(&seed.to_be_bytes());
        }
        ChecksumField::Complete => write_checksum(&mut packet, head),
        ChecksumField::Untouched => {}
    }
    packet
}

/// Cuts `packet` into segments of `size` payload bytes as a kernel's segmentation does: PSH and
/// FIN on the last only, SEQ counted on, each with its own lengths and checksums. The IPv4 ID
/// counts on unless `fixed_id`. `shape` says where the packet's headers are.
#[must_use]
pub fn resegment(packet: &[u8], shape: &Segment, size: usize, fixed_id: bool) -> Vec<Vec<u8>> {
    let (header, payload) = packet.split_at(shape.payload_at);
    let pieces = payload.chunks(size).count();
    let tcp = shape.transport_at;
    let mut segments = Vec::with_capacity(pieces);
    for (index, piece) in payload.chunks(size).enumerate() {
        let mut segment = [header, piece].concat();
        let seq = word(header, tcp + 4).wrapping_add((index * size) as u32);
        segment[tcp + 4..tcp + 8].copy_from_slice(&seq.to_be_bytes());
        if index + 1 < pieces {
            segment[tcp + 13] &= !FIN_AND_PSH;
        }
        if !shape.v6 && !fixed_id {
            let at = shape.network_at + 4;
            let id = u16::from_be_bytes([header[at], header[at + 1]]).wrapping_add(index as u16);
            segment[at..at + 2].copy_from_slice(&id.to_be_bytes());
        }
        write_lengths(&mut segment, shape);
        write_checksum(&mut segment, shape);
        segments.push(segment);
    }
    segments
}

fn write_lengths(packet: &mut [u8], shape: &Segment) {
    let ip = shape.network_at;
    let length = packet.len() - ip;
    if shape.v6 {
        packet[ip + 4..ip + 6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
        return;
    }
    packet[ip + 2..ip + 4].copy_from_slice(&(length as u16).to_be_bytes());
    packet[ip + 10..ip + 12].copy_from_slice(&[0, 0]);
    let checksum = internet_checksum(&packet[ip..shape.transport_at]);
    packet[ip + 10..ip + 12].copy_from_slice(&checksum.to_be_bytes());
}

fn write_checksum(packet: &mut [u8], shape: &Segment) {
    let tcp = shape.transport_at;
    packet[tcp + 16..tcp + 18].copy_from_slice(&[0, 0]);
    let checksum = transport_checksum(&shape.ends.addresses, TCP, &packet[tcp..]);
    packet[tcp + 16..tcp + 18].copy_from_slice(&checksum.to_be_bytes());
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
