//! Tests of `receive_past` with consumed frames, on a ring whose other side is simulated by a list.

use std::collections::VecDeque;
use std::io;

use rxo_vnet::VIRTIO_HEADER_BYTES;

use super::*;
use crate::virtio_net::{Accepts, Notices, PacketRing};

/// A simulated side of a ring, whose other side has sent a list of frames.
#[derive(Debug)]
struct Sent {
    events: Arc<Events>,
    notices: Notices,
    link: List,
}

#[derive(Debug)]
struct List {
    frames: VecDeque<Vec<u8>>,
    /// The number of calls that returned ring buffers.
    given_back: usize,
}

impl Side for Sent {
    type Link = List;

    fn events(&self) -> Arc<Events> {
        Arc::clone(&self.events)
    }

    fn attend(&mut self) -> Attended {
        Attended { has_changed: false, is_notified: false }
    }

    fn link(&mut self) -> Option<&mut List> {
        Some(&mut self.link)
    }

    fn invalid(&self) -> u64 {
        0
    }

    fn notices(&mut self) -> &mut Notices {
        &mut self.notices
    }
}

impl PacketRing for List {
    fn put<'p>(
        &mut self,
        _header: [u8; VIRTIO_HEADER_BYTES],
        _bytes: usize,
        _pieces: impl Iterator<Item = &'p [u8]>,
    ) -> io::Result<()> {
        unreachable!("a source puts nothing")
    }
}

impl Link for List {
    fn accepts(&self) -> Accepts {
        Accepts::driver(0)
    }

    fn gives(&self) -> Accepts {
        Accepts::device(0)
    }

    fn header_bytes(&self) -> usize {
        VIRTIO_HEADER_BYTES
    }

    fn take(&mut self, buffers: &mut Buffers) -> RingRead {
        if self.frames.is_empty() {
            return RingRead::Nothing;
        }
        let Some(buffer) = buffers.room() else { return RingRead::Nothing };
        let frame = self.frames.pop_front().unwrap();
        let bytes = VIRTIO_HEADER_BYTES + frame.len();
        buffer[..VIRTIO_HEADER_BYTES].fill(0);
        buffer[VIRTIO_HEADER_BYTES..bytes].copy_from_slice(&frame);
        RingRead::Frame(bytes)
    }

    fn finish_taking(&mut self) {
        self.given_back += 1;
    }

    fn ask_for_notifications(&mut self) -> bool {
        false
    }

    fn finish_putting(&mut self) -> u64 {
        0
    }
}

/// Creates a source with `buffers` buffers, and its side, whose frames have 60 bytes each.
fn source(buffers: usize, frames: &[u8]) -> (RingSource<Sent>, Shared<Sent>) {
    let frames = frames.iter().map(|byte| vec![*byte; 60]).collect();
    let side = Shared::new(Sent {
        events: Arc::new(Events::new().unwrap()),
        notices: Notices::default(),
        link: List { frames, given_back: 0 },
    });
    (RingSource::new(&side, buffers, 1_500), side)
}

#[test]
fn a_consumed_frame_gives_its_buffer_back_at_once_and_is_not_lent() {
    let (mut source, side) = source(2, &[1, 2, 1, 1]);
    let (mut batch, mut seen) = (Vec::new(), Vec::new());
    let looked = source
        .receive_past(&mut batch, 3, &mut |frame| {
            seen.push(frame.bytes[0]);
            if frame.bytes[0] == 1 { Verdict::Consumed } else { Verdict::Fallback }
        })
        .unwrap();
    assert_eq!((looked.given, looked.consumed), (1, 2));
    assert_eq!((seen, batch[0].bytes()), (vec![1, 2, 1], &[2; 60][..]));
    assert_eq!((source.counters().frames, source.counters().bytes), (3, 180));
    // The buffer of the returned frame is lent; the source has the other one again.
    assert!(!source.is_starved());
    let side = side.lock();
    assert_eq!((side.link.frames.len(), side.link.given_back), (1, 1));
}

#[test]
fn consumed_frames_need_one_buffer_however_many_they_are() {
    let (mut source, _side) = source(1, &[1; 100]);
    let mut batch = Vec::new();
    let looked = source.receive_past(&mut batch, 200, &mut |_| Verdict::Consumed).unwrap();
    assert_eq!((looked.given, looked.consumed), (0, 100));
    assert!(batch.is_empty() && !source.is_starved());
}
