//! Tests that the link in memory behaves like a device.

use core::num::NonZeroU16;

use rxo_frame::{ChecksumStatus, Gso, GsoKind};

use super::*;

/// A packet of two frames in three pieces.
#[derive(Clone, Copy)]
struct Two;

const OFFLOAD: Offload = Offload {
    checksum: ChecksumStatus::Partial { start: 34, offset: 16 },
    gso: Some(Gso::new(GsoKind::TcpV4, NonZeroU16::new(2).unwrap())),
    header_bytes: 54,
};

impl Gather<'static> for Two {
    fn offload(self) -> Offload {
        OFFLOAD
    }

    fn vlan(self) -> Option<VlanTag> {
        Some(VlanTag { tpid: NonZeroU16::new(0x8100).unwrap(), tci: 5 })
    }

    fn byte_len(self) -> usize {
        5
    }

    fn for_each_slice(self, mut visit: impl FnMut(&'static [u8])) {
        [&b"h"[..], b"ab", b"cd"].into_iter().for_each(&mut visit);
    }

    fn frame_count(self) -> usize {
        2
    }

    fn for_each_frame(self, mut visit: impl FnMut(Frame<&'static [u8]>)) {
        visit(Frame::new(b"1ab", Instant::ZERO));
        visit(Frame::new(b"2cd", Instant::ZERO));
    }
}

fn link() -> MemoryLink {
    MemoryLink::new(MemoryOptions { most_packets: 3, ..MemoryOptions::default() })
}

fn send(link: &MemoryLink, count: usize) {
    link.sink().transmit([Two; 8][..count].iter().copied()).unwrap();
}

#[test]
fn everything_said_of_a_packet_is_kept() {
    let link = link();
    link.set_now(Instant::from_nanos(7));
    send(&link, 1);
    let sent = link.take().unwrap();
    assert_eq!(sent.bytes, b"habcd");
    assert_eq!((sent.offload, sent.vlan), (OFFLOAD, Two.vlan()));
    assert_eq!((sent.frames, sent.pieces), (2, 3));
    assert_eq!(sent.sent_at, Instant::from_nanos(7));
    assert_eq!(link.take(), None);
}

#[test]
fn what_was_sent_is_received_within_the_budget() {
    let link = link();
    send(&link, 3);
    let mut frames = Vec::new();
    let mut source = link.source();
    assert_eq!(source.receive(&mut frames, 2).unwrap(), 2);
    assert_eq!(source.receive(&mut frames, 2).unwrap(), 1);
    assert_eq!(source.receive(&mut frames, 2).unwrap(), 0);
    assert_eq!((frames[2].bytes(), frames[2].gso), (&b"habcd"[..], OFFLOAD.gso));
    assert_eq!((source.counters().frames, source.counters().bytes), (3, 15));
}

#[test]
fn a_full_link_drops_and_counts() {
    let link = link();
    send(&link, 5);
    assert_eq!(link.sink().counters().dropped, 2);
    link.push(&Frame::new(b"one more", Instant::ZERO));
    assert_eq!(link.source().counters().ring_drops, 1);
    assert_eq!(link.take_all().len(), 3);
}

#[test]
fn a_refused_aggregate_goes_as_its_frames() {
    let link = link();
    link.refuse_aggregates();
    send(&link, 1);
    let bytes: Vec<_> = link.take_all().into_iter().map(|sent| sent.bytes).collect();
    assert_eq!(bytes, [b"1ab", b"2cd"]);
    let counters = link.sink().counters();
    assert_eq!((counters.packets, counters.frames, counters.fallbacks), (2, 2, 1));
}

#[test]
fn a_link_that_vanished_gives_what_it_has_and_then_says_so() {
    let link = link();
    send(&link, 1);
    link.vanish();
    let mut frames = Vec::new();
    assert_eq!(link.source().receive(&mut frames, 8).unwrap(), 1);
    assert!(matches!(link.source().receive(&mut frames, 8), Err(DeviceError::Gone(_))));
    let sent = link.sink().transmit([Two].into_iter());
    assert!(matches!(sent, Err(DeviceError::Gone(_))));
    assert_eq!(link.sink().counters().dropped, 1);
}

#[test]
fn what_there_is_no_room_for_is_kept_in_order_and_goes_when_there_is() {
    let link = link();
    link.set_room(Some(1));
    send(&link, 3);
    let mut sink = link.sink();
    assert_eq!((sink.is_blocked(), sink.counters().frames), (true, 2));
    sink.resume().unwrap();
    assert!(sink.is_blocked(), "there is still no room");
    link.set_room(None);
    sink.resume().unwrap();
    assert_eq!((sink.is_blocked(), sink.counters().frames), (false, 6));
    assert_eq!(sink.counters().dropped, 0);
}

#[test]
fn every_frame_is_sent_dropped_or_kept() {
    for every in 0..5 {
        for room in [None, Some(0), Some(1), Some(2)] {
            let link = link();
            link.set_room(room);
            link.refuse_every(every);
            send(&link, 8);
            let mut sink = link.sink();
            sink.abandon();
            let counters = sink.counters();
            assert_eq!(counters.frames + counters.dropped_frames, 16, "{every} {room:?}");
            assert!(!sink.is_blocked());
        }
    }
}

#[test]
fn the_load_is_what_nobody_took_yet() {
    let link = link();
    let unread = || link.sink().load().map(|load| load.unread);
    assert_eq!(unread(), Some(0));
    link.set_room(Some(1));
    send(&link, 3);
    assert_eq!(unread(), Some(3), "one in the link, two kept");
    assert!(link.take().is_some());
    assert_eq!(unread(), Some(2));
    link.sink().abandon();
    assert!(link.sink().load().is_some_and(rxo_frame::Load::is_idle));
}
