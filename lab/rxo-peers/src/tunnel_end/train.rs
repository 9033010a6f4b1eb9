//! Divides a UDP GSO frame into datagrams, as a kernel does for a socket that takes no GSO frames.

use super::sum::Sum;

/// Returns the datagrams in `frame`, whose UDP header begins at `udp`, after an IPv6 header if `is_v6`. Each
/// has `size` bytes of payload, except the last, and a complete checksum.
pub(super) fn divide(frame: &[u8], udp: usize, is_v6: bool, size: usize) -> Vec<Vec<u8>> {
    let Some((headers, payload)) = frame.split_at_checked(udp + UDP_BYTES) else {
        return Vec::new();
    };
    let ip_bytes = if is_v6 { 40 } else { 20 };
    let Some(ip) = udp.checked_sub(ip_bytes) else { return Vec::new() };
    let datagrams = payload.chunks(size.max(1)).enumerate();
    datagrams
        .map(|(n, payload)| {
            let mut frame = [headers, payload].concat();
            let bytes = (UDP_BYTES + payload.len()) as u16;
            write(&mut frame, udp + 4, bytes);
            if is_v6 {
                write(&mut frame, ip + 4, bytes);
            } else {
                let id = u16::from_be_bytes([headers[ip + 4], headers[ip + 5]]);
                write(&mut frame, ip + 2, bytes + ip_bytes as u16);
                write(&mut frame, ip + 4, id.wrapping_add(n as u16));
                write(&mut frame, ip + 10, 0);
                let checksum = !Sum::default().bytes(&frame[ip..udp]).fold();
                write(&mut frame, ip + 10, checksum);
            }
            write(&mut frame, udp + 6, 0);
            let addresses = if is_v6 { ip + 8..udp } else { ip + 12..udp };
            let pseudo = Sum::default().bytes(&frame[addresses]).word(UDP).word(bytes);
            let sum = pseudo.bytes(&frame[udp..]).fold();
            write(&mut frame, udp + 6, if sum == u16::MAX { sum } else { !sum });
            frame
        })
        .collect()
}

fn write(frame: &mut [u8], at: usize, word: u16) {
    frame[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

const UDP_BYTES: usize = 8;
const UDP: u16 = 17;
