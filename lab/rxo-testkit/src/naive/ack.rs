//! Makes an ACK from another one in the slow and obvious way: copies it, overwrites its fields, and computes
//! both checksums over all bytes.

use super::{Segment, internet_checksum, pseudo_header_sum, transport_checksum};

const TCP: u8 = 6;
/// Data offset of a TCP header whose only option is a timestamp at its usual offset.
const WORDS_WITH_TIMESTAMP: u8 = 8;

/// The fields of the new ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NaiveAck {
    /// SEG.ACK.
    pub ack: u32,
    /// SEG.WND.
    pub window: u16,
    /// TSval and TSecr; ignored if the frame has no timestamp.
    pub timestamp: (u32, u32),
    /// The IPv4 identification.
    pub id: u16,
}

/// Returns a copy of the ACK frame `first`, which was parsed as `seen`, with the numbers of `new`. With
/// `is_seed`, the checksum field holds only the pseudo-header's sum, which a device completes.
///
/// # Panics
/// If `seen` was not parsed from `first`.
#[must_use]
pub fn another_ack(first: &[u8], seen: &Segment, is_seed: bool, new: NaiveAck) -> Vec<u8> {
    let mut frame = first.to_vec();
    let ip = seen.network_at;
    if !seen.v6 {
        put(&mut frame, ip + 4, &new.id.to_be_bytes());
        put(&mut frame, ip + 10, &[0, 0]);
        let header_bytes = usize::from(frame[ip] & 0x0f) * 4;
        let checksum = internet_checksum(&frame[ip..ip + header_bytes]);
        put(&mut frame, ip + 10, &checksum.to_be_bytes());
    }
    let tcp = seen.transport_at;
    put(&mut frame, tcp + 8, &new.ack.to_be_bytes());
    put(&mut frame, tcp + 14, &new.window.to_be_bytes());
    if frame[tcp + 12] >> 4 == WORDS_WITH_TIMESTAMP {
        put(&mut frame, tcp + 24, &new.timestamp.0.to_be_bytes());
        put(&mut frame, tcp + 28, &new.timestamp.1.to_be_bytes());
    }
    put(&mut frame, tcp + 16, &[0, 0]);
    let segment = &frame[tcp..ip + seen.packet_bytes()];
    let checksum = if is_seed {
        pseudo_header_sum(&seen.ends.addresses, TCP, segment.len())
    } else {
        transport_checksum(&seen.ends.addresses, TCP, segment)
    };
    put(&mut frame, tcp + 16, &checksum.to_be_bytes());
    frame
}

fn put(frame: &mut [u8], at: usize, bytes: &[u8]) {
    frame[at..at + bytes.len()].copy_from_slice(bytes);
}
