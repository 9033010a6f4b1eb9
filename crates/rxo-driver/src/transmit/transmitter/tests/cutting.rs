//! Tests of segmentation: GSO frames of tunnels, for devices that cannot segment them.

use rxo_vnet::{VNET_HEADER_BYTES, VnetHeader, segments};
use rxo_wire::checksum::{Summer, complete, verify_transport};
use rxo_wire::segmentation::Checksums;

use super::*;

/// Builds a VXLAN packet with an outer UDP checksum, which differs for each of its segments.
fn with_checksum(payload: usize) -> Vec<u8> {
    let mut whole = vxlan(payload);
    whole[40..42].copy_from_slice(&[1, 1]);
    whole
}

/// Returns the packet as a GSO frame with segments of 1,000 bytes.
fn large(whole: &[u8]) -> Frame<&[u8]> {
    let tunnel = GsoTunnel::udp(UdpTunnel {
        outer_transport: 34,
        inner_network: (VXLAN_BYTES + 14) as u8,
        is_outer_v6: false,
        has_checksum: true,
    });
    large_in_vxlan(whole, 1_000, Some(tunnel))
}

/// Returns the packets that an Ethernet device gets for such a GSO frame, and the counters.
fn sent_of_datagrams(payload: usize, takes_trains: bool) -> (Vec<Vec<u8>>, SinkCounters) {
    let whole = with_checksum(payload);
    let form = Form { takes_trains, ..Form::ETHERNET };
    let mut transmitter = Transmitter::new(Keeper::default(), form);
    transmitter.transmit(iter::once(large(&whole))).unwrap();
    let are_singly_sent = !takes_trains && payload > 1_000;
    assert_eq!(transmitter.take_notice().is_some(), are_singly_sent);
    (std::mem::take(&mut transmitter.writer.0), transmitter.counters())
}

/// Segments a UDP GSO frame, given with its header, as a kernel does.
fn divided(train: &[u8]) -> Vec<Vec<u8>> {
    let header = VnetHeader::read(train).unwrap();
    let frame = &train[VNET_HEADER_BYTES..];
    let (status, gso) = header.checked(LinkKind::Ethernet, frame).unwrap();
    let Some(gso) = gso else { return vec![frame.to_vec()] };
    assert_eq!(gso.kind, GsoKind::Udp);
    let checksums = Checksums::Complete(Summer::detect());
    let mut segments = segments(LinkKind::Ethernet, frame, (status, gso), checksums).unwrap();
    let (mut all, mut room) = (Vec::new(), [0; 1 << 16]);
    while let Some(bytes) = segments.next_into(&mut room).unwrap() {
        all.push(room[..bytes].to_vec());
    }
    all
}

/// A device segments a train into datagrams with checksums, so it gets a train: the same bytes leave it as if
/// each segment had been sent alone. Segments that exceed one packet form several trains.
#[test]
fn segments_that_are_datagrams_with_a_checksum_leave_as_trains() {
    for (payload, trains) in [(900, 1), (1_001, 1), (2_500, 1), (64_000, 2)] {
        let (sent, counters) = sent_of_datagrams(payload, true);
        assert_eq!(sent.len(), trains, "{payload}");
        let (singly, _) = sent_of_datagrams(payload, false);
        let mut singly: Vec<_> = singly.iter().map(|bytes| completed(bytes)).collect();
        let mut divided: Vec<_> = sent.iter().flat_map(|train| divided(train)).collect();
        assert_eq!(divided.len(), singly.len());
        assert_eq!(divided, singly, "{payload}");
        let frames = payload.div_ceil(1_000) as u64;
        assert_eq!((counters.frames, counters.segments_added), (frames, frames - 1));
        divided.append(&mut singly);
        for frame in divided {
            let outer = parse(&frame).unwrap();
            assert!(verify_transport(&outer, &frame, Summer::detect()));
            let inner = inside_at(&frame, &outer, VXLAN_BYTES + 34).unwrap();
            assert!(verify_transport(&inner.parsed, &frame, Summer::detect()));
        }
    }
}

/// Returns the frame after its header, with the checksum completed that the header leaves to the device.
fn completed(bytes: &[u8]) -> Vec<u8> {
    let header = VnetHeader::read(bytes).unwrap();
    let mut frame = bytes[VNET_HEADER_BYTES..].to_vec();
    if let ChecksumStatus::Partial { start, offset } = header.checksum() {
        let (start, offset) = (start.into(), usize::from(offset));
        let checksum = complete(&frame, start, offset, Summer::detect()).unwrap();
        frame[start + offset..][..2].copy_from_slice(&checksum.to_be_bytes());
    }
    frame
}

/// A kernel that cannot segment UDP GSO frames refuses the train; its segments are sent in its place, and all
/// are counted.
#[test]
fn a_refused_train_leaves_as_its_segments() {
    let whole = with_checksum(2_500);
    let form = Form { takes_trains: true, ..Form::ETHERNET };
    let script = VecDeque::from([(0, libc::EINVAL)]);
    let mut transmitter = Transmitter::new(Scripted { script, taken: Vec::new() }, form);
    transmitter.transmit(iter::once(large(&whole))).unwrap();
    let counters = transmitter.counters();
    assert_eq!((counters.packets, counters.frames, counters.dropped), (3, 3, 0));
    assert_eq!((counters.segments_added, counters.fallbacks), (2, 2));
}

/// Segments are kept while the device is full, and every one is accounted for.
#[test]
fn a_gso_frame_that_is_cut_is_accounted_for_at_every_refusal() {
    for takes in 0..=70 {
        for code in [0, libc::EAGAIN, libc::ENOBUFS] {
            let whole = vxlan(65_000);
            let large = large_in_vxlan(&whole, 900, Some(GsoTunnel::OTHER));
            let script = VecDeque::from([(takes, code), (1, libc::EAGAIN)]);
            let mut transmitter =
                Transmitter::new(Scripted { script, taken: Vec::new() }, Form::ETHERNET);
            transmitter.transmit([large, large].into_iter()).unwrap();
            let kept = transmitter.kept() as u64;
            let SinkCounters { frames, dropped_frames, segments_added, .. } =
                transmitter.counters();
            assert_eq!(frames + dropped_frames + kept, 2 + segments_added, "{takes} {code}");
            while transmitter.is_blocked() {
                transmitter.resume().unwrap();
            }
            let SinkCounters { frames, dropped_frames, .. } = transmitter.counters();
            assert_eq!(frames + dropped_frames, 2 * 73, "{takes} {code}");
        }
    }
}
