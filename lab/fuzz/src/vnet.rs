//! Target `vnet`: any bytes as a read of a TUN or guest (a `virtio_net_hdr` and a packet) are refused, or
//! become equivalent packets.

use rxo_vnet::{Packets, VNET_HEADER_BYTES, VnetHeader, packets};
use rxo_wire::checksum::{Summer, verify_transport};
use rxo_wire::{Transport, parse_ip};

/// Size of an output buffer, longer than any packet of an input.
const ROOM: usize = 1 << 17;

/// Reads `data` as one read of a TUN.
///
/// # Panics
/// If a resulting packet does not match header and packet.
pub fn run(data: &[u8]) {
    let Some(header) = VnetHeader::read(data) else {
        assert!(packets(data).is_err(), "less than a header");
        return;
    };
    let packet = &data[VNET_HEADER_BYTES..];
    let Ok(given) = packets(data) else { return };
    match header.gso() {
        Some(gso) => segments(packet, gso.size.get().into(), given),
        None => {
            assert!(!header.has_gso(), "a GSO frame passes as a packet");
            whole(packet, given);
        }
    }
}

/// Checks that a single packet stays unchanged except for the checksum's two bytes.
fn whole(packet: &[u8], mut given: Packets<'_>) {
    assert_eq!(given.remaining(), 1);
    assert!(packet.is_empty() || given.next_into(&mut vec![0; packet.len() - 1]).is_err());
    let mut out = vec![0; ROOM];
    assert_eq!(given.next_into(&mut out), Ok(Some(packet.len())));
    let changed: Vec<usize> = (0..packet.len()).filter(|at| packet[*at] != out[*at]).collect();
    let is_field = changed.first().is_none_or(|first| changed.iter().all(|at| at - first < 2));
    assert!(is_field, "bytes {changed:?} were changed");
    assert_eq!(given.next_into(&mut out), Ok(None));
}

/// Checks that segments are complete packets of the same flow, with the frame's payload.
fn segments(packet: &[u8], size: usize, mut given: Packets<'_>) {
    let frame = parse_ip(packet).expect("it was segmented, so it can be read");
    let mut rest = &packet[frame.at.payload_range()];
    let (count, mut out) = (given.remaining(), vec![0; ROOM]);
    assert_eq!(count, rest.len().div_ceil(size));
    for number in 0..count {
        assert_eq!(given.remaining(), count - number);
        let bytes = given.next_into(&mut out).expect("there is room").expect("one is left");
        let segment = &out[..bytes];
        let parsed = parse_ip(segment).expect("a segment can be read");
        assert_eq!((parsed.key, parsed.at.end as usize), (frame.key, bytes));
        assert!(parsed.ip.checksum_ok || !frame.ip.checksum_ok, "the IP checksum is wrong");
        assert!(verify_transport(&parsed, segment, Summer::detect()), "the checksum is wrong");
        let (now, later) = rest.split_at(rest.len().min(size));
        assert_eq!(&segment[parsed.at.payload_range()], now, "segment {number}");
        rest = later;
        if let (Transport::Tcp(whole), Transport::Tcp(part)) = (&frame.transport, &parsed.transport)
        {
            assert_eq!(part.seq, whole.seq + (number * size) as u32);
        }
    }
    assert!(rest.is_empty(), "{} bytes are missing", rest.len());
    assert_eq!(given.next_into(&mut out), Ok(None));
}
