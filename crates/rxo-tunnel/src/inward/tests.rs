//! Threads that decrypt on a virtual schedule, compared with one that does all in order; a TUN that is full.

use std::collections::VecDeque;
use std::io::{PipeReader, PipeWriter, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::thread;

use boringtun::noise::TunnResult;
use proptest::prelude::*;
use rxo::device::SinkCapabilities;
use rxo::io::Ticket;
use rxo::{DeviceError, Gather, LinkKind};

use super::*;
use crate::interface::tests::{Pair, bind, ends};

const THREADS: usize = 4;

/// A thread that does one step at a time, whenever the schedule says so.
struct VirtualThread<'o> {
    batch: Batch,
    ticket: Option<Ticket<'o, Vec<Vec<u8>>>>,
    received: VecDeque<Vec<u8>>,
}

/// The outcome of a run.
struct Run {
    /// The numbers of the packets in the order in which they were decrypted.
    decrypted: Vec<u32>,
    /// The packets in the order in which they left.
    left: Vec<Vec<u8>>,
    refused: u64,
}

/// Returns an IPv4 packet from 10.0.0.1 with a number in it.
fn packet(number: u32) -> Vec<u8> {
    let mut bytes = vec![0; 28];
    (bytes[0], bytes[3]) = (0x45, 28);
    bytes[12..16].copy_from_slice(&[10, 0, 0, 1]);
    bytes[20..24].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[20..24].try_into().unwrap())
}

/// Receives `count` packets in batches of `most` datagrams, decrypts them in trains of 16, and lets threads act as `schedule`
/// says; afterwards in turn.
fn run(count: u32, most: usize, schedule: impl Iterator<Item = usize>) -> Run {
    let socket = bind("127.0.0.1");
    let mut pair = Pair::with_session(&socket);
    let mut seal = |number| match pair.peer.encapsulate(&packet(number), &mut [0; 256]) {
        TunnResult::WriteToNetwork(datagram) => datagram.to_vec(),
        other => panic!("{other:?}"),
    };
    let mut wire: VecDeque<Vec<u8>> = (0..count).map(&mut seal).collect();
    let (interface, pool) = (pair.shared.read(), Pool::new(THREADS * most, 256));
    let exit = Ordered::new(Vec::new());
    let new = || VirtualThread { batch: Batch::new(), ticket: None, received: VecDeque::new() };
    let mut threads: [VirtualThread<'_>; THREADS] = std::array::from_fn(|_| new());
    let mut decrypted = Vec::new();
    for n in schedule.chain((0..THREADS).cycle()) {
        if wire.is_empty() && threads.iter().all(|thread| thread.ticket.is_none()) {
            break;
        }
        let thread = &mut threads[n];
        let Some(ticket) = &thread.ticket else {
            thread.received = wire.drain(..most.min(wire.len())).collect();
            thread.ticket = (!thread.received.is_empty()).then(|| exit.ticket());
            continue;
        };
        if thread.received.is_empty() {
            if ticket.is_next() {
                let packets = thread.batch.packets.drain(..);
                ticket.wait().extend(packets.map(|packet| packet.to_vec()));
                thread.ticket = None;
            }
            continue;
        }
        let train = thread.received.drain(..16.min(thread.received.len()));
        let (bytes, from) = (train.collect::<Vec<_>>().concat(), socket.local_addr().unwrap());
        let train = Train { from, bytes: &bytes, datagram_bytes: 28 + 32, to: None, ecn: 0 };
        let before = thread.batch.packets.len();
        thread.batch.decrypt(&train, ticket.number(), &interface, &pool);
        decrypted.extend(thread.batch.packets[before..].iter().map(|packet| number(packet)));
    }
    let refused = threads.iter().map(|thread| thread.batch.totals[4]).sum();
    Run { decrypted, left: std::mem::take(&mut *exit.lock()), refused }
}

/// With one thread each packet leaves in the order of arrival.
fn assert_in_order(run: &Run, count: u32) {
    assert_eq!(run.refused, 0);
    assert!(run.left.iter().cloned().eq((0..count).map(packet)));
}

/// The first thread is not scheduled until all others wait for it.
fn one_sleeps() -> impl Iterator<Item = usize> {
    std::iter::once(0).chain((0..500).map(|n| 1 + n % (THREADS - 1)))
}

#[test]
fn a_thread_that_sleeps_delays_the_others_and_nothing_is_refused() {
    let most = messages(THREADS) * MOST_IN_MESSAGE;
    let run = run(1_500, most, one_sleeps());
    assert_in_order(&run, 1_500);
    assert!(!run.decrypted.is_sorted(), "the schedule has caused no disorder");
}

/// Batches of several threads are smaller, because larger ones would leave the replay window.
#[test]
fn larger_batches_would_be_refused_as_repetitions() {
    assert!(run(2_500, 2 * messages(THREADS) * MOST_IN_MESSAGE, one_sleeps()).refused > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn packets_leave_in_the_order_of_their_arrival(
        most in 1..=messages(THREADS) * MOST_IN_MESSAGE,
        schedule in proptest::collection::vec(0..THREADS, 0..400),
    ) {
        assert_in_order(&run(1_000, most, schedule.into_iter()), 1_000);
    }
}

/// A TUN that is full from its first packet on.
struct Full {
    packets: u64,
    /// This end of a pipe is never writable.
    pipe: (PipeReader, PipeWriter),
}

impl Descriptors for Full {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.pipe.0.as_fd());
    }
}

impl FrameSink for Full {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities::with_gso(LinkKind::RawIp, 1_420)
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        self.packets += batch.len() as u64;
        Ok(())
    }

    fn counters(&self) -> SinkCounters {
        SinkCounters { packets: self.packets, ..SinkCounters::default() }
    }

    fn is_blocked(&self) -> bool {
        self.packets > 0
    }
}

/// The thread that waits for the TUN holds the exit.
#[test]
fn while_the_tun_is_full_figures_are_printed_and_buffers_grow() {
    let socket = bind("127.0.0.1");
    let mut pair = Pair::with_session(&socket);
    let tun = Full { packets: 0, pipe: pipe().unwrap() };
    let (inward, stop) = (Inward::new(tun, 1_420, true).unwrap(), AtomicBool::new(false));
    let mut own = Decryptor::new(pair.shared.read().outside.socket());
    let mut bytes = [0; 256];
    let TunnResult::WriteToNetwork(datagram) = pair.peer.encapsulate(&packet(0), &mut bytes) else {
        panic!("no session");
    };
    let port = pair.shared.read().outside.port();
    socket.send_to(datagram, ("127.0.0.1", port)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                inward.turn(&mut own, &pair.shared, Some(&stop)).unwrap();
            }
        });
        while lock(&inward.figures).1.packets == 0 {
            thread::yield_now();
        }
        let have_ended = ends(scope, || {
            inward.follow_mtu(9_000);
            assert!(inward.to_string().starts_with("in: 1 datagrams in 1 messages, 1 calls"));
        });
        stop.store(true, Ordering::Relaxed);
        assert!(have_ended, "the timers wait for the TUN");
    });
    assert!(lock(&inward.buffers).bytes_each() >= 9_000);
}
