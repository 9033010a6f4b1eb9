//! Tests of a connection's cell. Its lock never stops the worker, and no segment is lost, reordered or left
//! in the backlog.

use std::sync::mpsc::Receiver;
use std::thread;

use rxo_device::{FrameSink, FrameSource, MemoryLink, MemoryOptions};
use rxo_tcp::{Ecn, Payload, SegmentOptions, Transmit};
use rxo_wire::{SeqNumber, TcpFlags};

use super::*;
use crate::HostConfig;
use crate::settings::Settings;
use crate::shards::ShardRole;

type Bytes = Vec<u8>;

const NOW: Instant = Instant::from_micros(1_000_000);

/// The cell of an established connection, and the sequence number at which its peer's data begins.
struct Scene {
    cell: Arc<Cell<Bytes>>,
    commands: Receiver<Command<Bytes>>,
    seq: SeqNumber,
    ack: SeqNumber,
}

fn segment_of(transmit: &Transmit<'_>) -> Segment<Buffer<Bytes>> {
    Segment {
        seq: transmit.seq,
        ack: transmit.ack,
        flags: transmit.flags,
        window: transmit.window,
        options: SegmentOptions::read(transmit.options.as_slice()),
        payload: None,
        ecn: Ecn::NotCapable,
        arrived_at: NOW,
    }
}

impl Scene {
    fn new() -> Self {
        let link = MemoryLink::new(MemoryOptions::default());
        let mut config = HostConfig::new(vec!["10.0.0.2/24".parse().unwrap()], [1, 2]);
        config.tcp.timestamps = false;
        let (from, to) = (link.source().capabilities(), link.sink().capabilities());
        let settings = Settings::new(&config, from, to).unwrap();
        let (post, commands) = Post::<Bytes>::new(&config, settings, ShardRole::default()).unwrap();
        let ours = FlowKey::v4(0x0a00_0002, 0x0a00_0001, 80 << 16 | 5_000, 0);
        let share = post.memory().reserve(post.settings.tcp(&ours)).unwrap();
        let mut server = post.settings.connection::<Bytes>(ours, share).unwrap();
        let mut client = post.settings.connection::<Bytes>(ours.reversed(), share).unwrap();
        client.connect(NOW);
        for _ in 0..3 {
            while let Some(transmit) = client.poll_transmit(NOW) {
                server.on_arrival(NOW, segment_of(&transmit).into());
            }
            while let Some(transmit) = server.poll_transmit(NOW) {
                client.on_arrival(NOW, segment_of(&transmit).into());
            }
        }
        let (seq, ack) = (server.received_to(), client.received_to());
        Self { cell: Cell::new(server, share, post), commands, seq, ack }
    }

    /// Returns a segment with one byte of data, `n`, at offset `n` of the stream.
    fn byte(&self, n: u32) -> Segment<Buffer<Bytes>> {
        byte(self.seq + n, self.ack, n as u8)
    }

    fn marks(&self) -> usize {
        self.commands.try_iter().inspect(|_| self.cell.unmark()).count()
    }

    fn read(&self) -> Vec<u8> {
        self.cell.with(|inner| {
            let mut text = vec![0; inner.connection.readable_bytes()];
            let _ = inner.connection.receive(&mut text);
            text
        })
    }
}

#[test]
fn what_comes_while_an_application_has_it_is_run_when_it_leaves() {
    let scene = Scene::new();
    scene.cell.with(|_| {
        let together = (0..3).map(|n| scene.byte(n));
        assert_eq!(scene.cell.on_arrival(NOW, Arrival::segments(together)), ArrivalOutcome::Waits);
        assert_eq!(scene.cell.on_arrival(NOW, scene.byte(3).into()), ArrivalOutcome::Waits);
    });
    assert!(scene.cell.backlog.is_empty());
    assert_eq!(scene.marks(), 1, "the worker hears of it");
    assert_eq!(scene.cell.serve(|inner| inner.connection.readable_bytes()), Some(4));
    assert_eq!(scene.read(), [0, 1, 2, 3]);
}

#[test]
fn a_worker_that_cannot_serve_is_told_when_it_can() {
    let scene = Scene::new();
    scene.cell.with(|_| assert!(scene.cell.serve(|_| ()).is_none()));
    assert_eq!(scene.marks(), 1);
    scene.cell.with(|_| ());
    assert_eq!(scene.marks(), 0, "it is told once");
}

/// A thread that lists connections holds the lock briefly; the worker waits for it instead of skipping its
/// action.
#[test]
fn what_the_worker_prepares_is_done_though_another_thread_looks() {
    let scene = Scene::new();
    let (cell, has_begun) = (&scene.cell, AtomicBool::new(false));
    let mut is_done = false;
    thread::scope(|scope| {
        cell.with(|_| {
            scope.spawn(|| {
                has_begun.store(true, Ordering::SeqCst);
                cell.prepare(|_| is_done = true);
            });
            while !has_begun.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            // Gives the thread time to find the lock taken. If this is too short, the test proves nothing,
            // but does not fail.
            (0..1_000).for_each(|_| thread::yield_now());
        });
    });
    assert!(is_done);
}

#[test]
fn a_full_backlog_drops_what_comes_then() {
    let scene = Scene::new();
    scene.cell.with(|_| {
        let given: Vec<_> =
            (0..2_000).map(|n| scene.cell.on_arrival(NOW, scene.byte(n).into())).collect();
        let kept = given.iter().take_while(|given| **given == ArrivalOutcome::Waits).count();
        assert_eq!(kept, 1_024);
        assert!(given[kept..].iter().all(|given| *given == ArrivalOutcome::Dropped));
    });
    // All data that waited is there, although the connection keeps fewer buffers.
    assert_eq!(scene.read().len(), 1_024);
}

/// A worker passes segments of one byte while two application threads use the cell.
#[test]
fn nothing_is_lost_disordered_or_left_lying_between_threads() {
    const BYTES: u32 = 20_000;
    let scene = Scene::new();
    let (cell, seq, ack) = (&scene.cell, scene.seq, scene.ack);
    let (read, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    let given = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // Stops the other threads if this one panics.
            let _end = End(&is_over);
            let give = |n: u32| {
                // Stays within the number of buffers that the connection keeps.
                while n - read.load(Ordering::SeqCst) > 200 && !is_over.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                let given = cell.on_arrival(NOW, byte(seq + n, ack, n as u8).into());
                cell.serve(|inner| while inner.connection.poll_transmit(NOW).is_some() {});
                given
            };
            (0..BYTES).map(give).collect::<Vec<_>>()
        });
        scope.spawn(|| {
            let _end = End(&is_over);
            while read.load(Ordering::SeqCst) < BYTES && !is_over.load(Ordering::SeqCst) {
                cell.with(|inner| inner.connection.statistics());
            }
        });
        while read.load(Ordering::SeqCst) < BYTES && !(worker.is_finished() && cell.is_drained()) {
            let mut text = [0; 64];
            let count = cell.with(|inner| inner.connection.receive(&mut text).unwrap_or(0));
            for value in &text[..count] {
                assert_eq!(*value, read.fetch_add(1, Ordering::SeqCst) as u8);
            }
        }
        worker.join().unwrap()
    });
    assert_eq!(read.into_inner(), BYTES);
    assert!(!given.contains(&ArrivalOutcome::Dropped));
    assert!(cell.backlog.is_empty(), "nothing is left lying");
}

/// Sets the flag that stops the other threads, if its thread panics.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}

impl Cell<Bytes> {
    fn is_drained(&self) -> bool {
        self.serve(|inner| inner.connection.readable_bytes() == 0).unwrap_or(false)
    }
}

fn byte(seq: SeqNumber, ack: SeqNumber, value: u8) -> Segment<Buffer<Bytes>> {
    Segment {
        seq,
        ack,
        flags: TcpFlags::ACK,
        window: 1_000,
        options: SegmentOptions::default(),
        payload: Payload::new(Buffer::Lent(vec![value]), 0..1),
        ecn: Ecn::NotCapable,
        arrived_at: NOW,
    }
}
