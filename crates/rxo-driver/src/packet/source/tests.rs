use std::os::unix::net::UnixStream;

use rxo_vnet::VnetHeader;

use super::*;

fn source(ring: Arc<RingMap>) -> PacketSource {
    let (socket, _peer) = UnixStream::pair().unwrap();
    let socket = Arc::new(socket.into());
    PacketSource {
        device: "packet:lo".to_owned(),
        interface: Interface::find("lo").unwrap(),
        arrivals: Arrivals::none(Arc::clone(&socket)),
        socket,
        ring,
        large: Pools::new(1),
        spare: None,
        next_slot: 0,
        empty_at: Instant::ZERO,
        mtu: 1_500,
        counters: SourceCounters::default(),
        is_gone: false,
        is_down: false,
        lacks_buffer: false,
        queue: None,
        must_resume: false,
    }
}

#[test]
fn a_consumed_frame_gives_its_slot_back_at_once_and_is_not_lent() {
    let ring = RingMap::anonymous(64, 1_600);
    for (slot, byte) in (0..).zip([1, 2, 1, 1]) {
        ring.fill(slot, 0, VnetHeader::default(), &[byte; 60]);
    }
    let mut source = source(Arc::clone(&ring));
    let (mut batch, mut seen) = (Vec::new(), Vec::new());
    let looked = source
        .receive_past(&mut batch, 3, &mut |frame| {
            seen.push(frame.bytes[0]);
            if frame.bytes[0] == 1 { Verdict::Consumed } else { Verdict::Fallback }
        })
        .unwrap();
    assert_eq!(looked, Looked { given: 1, consumed: 2, in_place: 2 });
    assert_eq!((seen, batch[0].bytes()), (vec![1, 2, 1], &[2; 60][..]));
    assert_eq!((source.counters().frames, source.counters().bytes), (3, 180));
    // The slot of the returned frame is lent; the kernel has the other slots again.
    assert!(!ring.is_newest_lent(1) && ring.is_newest_lent(2) && !ring.is_newest_lent(3));
    assert!(ring.filled(0).is_none() && ring.filled(2).is_none() && ring.filled(3).is_some());
}

#[test]
fn a_short_batch_means_an_empty_ring_also_behind_discarded_frames() {
    let ring = RingMap::anonymous(64, 1_600);
    (0..6).for_each(|slot| ring.fill_cut_short(slot, &[0x5a; 100]));
    (6..12).for_each(|slot| ring.fill(slot, 0, VnetHeader::default(), &[0x5a; 100]));
    let mut source = source(ring);
    let mut batch = Vec::new();
    for given in [4, 2, 0] {
        assert_eq!(source.receive(&mut batch, 4).unwrap(), given);
        assert_eq!(source.counters().truncated, 6);
    }
}
