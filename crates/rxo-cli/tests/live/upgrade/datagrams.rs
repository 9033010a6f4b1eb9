//! Numbered datagrams, which show what an upgrade loses, duplicates and delays.

use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rxo_testbed::Namespace;

use crate::process::LONG;

/// A sender of one datagram a millisecond, and its receiver. Both end on drop.
pub(super) struct Datagrams {
    stop: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    longest_ns: Arc<AtomicU64>,
    threads: Option<(JoinHandle<u32>, JoinHandle<Vec<u32>>)>,
}

/// The datagrams that a [`Datagrams`] has counted.
#[derive(Debug)]
pub(super) struct Crossing {
    pub(super) sent: u32,
    pub(super) missing: u32,
    pub(super) twice: u32,
}

/// The number in the datagrams that are sent until the receiver has ended.
const LAST: u32 = u32::MAX;
const EVERY: Duration = Duration::from_millis(1);

impl Datagrams {
    /// Starts to send datagrams `from` a namespace `to` another one, which has `address`. Returns once the first has arrived.
    pub(super) fn start(from: &Namespace, to: &Namespace, address: IpAddr) -> Self {
        let receiver = to.run(|| UdpSocket::bind((address, 0)).unwrap()).unwrap();
        receiver.set_read_timeout(Some(LONG)).unwrap();
        // A receiver that waits for a processor loses none.
        set_socket_recv_buffer_size_force(&receiver, 8 << 20).unwrap();
        let at = receiver.local_addr().unwrap();
        let sender = from
            .run(|| {
                let any: IpAddr = if at.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
                let socket = UdpSocket::bind((any, 0)).unwrap();
                socket.connect(at).unwrap();
                socket
            })
            .unwrap();
        let stop = Arc::<AtomicBool>::default();
        let (received, longest_ns) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let counts = (Arc::clone(&received), Arc::clone(&longest_ns));
        let receives = thread::spawn(move || receive(&receiver, counts));
        let end = Arc::clone(&stop);
        let sends = thread::spawn(move || send(&sender, &end));
        let datagrams = Self { stop, received, longest_ns, threads: Some((sends, receives)) };
        datagrams.await_more(1);
        datagrams
    }

    /// Waits until `count` more datagrams have arrived.
    pub(super) fn await_more(&self, count: u64) {
        let received = || self.received.load(Ordering::Relaxed);
        let before = received();
        crate::process::wait_until("datagrams arrive", || received() >= before + count);
    }

    /// Returns the longest time between two datagrams since the last call.
    pub(super) fn longest_gap(&self) -> Duration {
        Duration::from_nanos(self.longest_ns.swap(0, Ordering::Relaxed))
    }

    /// Ends sender and receiver, and returns the counts.
    pub(super) fn end(mut self) -> Crossing {
        self.stop.store(true, Ordering::Relaxed);
        let (sends, receives) = self.threads.take().unwrap();
        let mut numbers = receives.join().unwrap();
        let sent = sends.join().unwrap();
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        let twice = (all - numbers.len()) as u32;
        // The first ones may be lost during address resolution.
        Crossing { sent, missing: sent - numbers[0] - numbers.len() as u32, twice }
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Sends numbers from 0 on until `stop` is set, and then [`LAST`] until nobody receives. Returns the number
/// of datagrams sent.
fn send(socket: &UdpSocket, stop: &AtomicBool) -> u32 {
    let mut next = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        // An error belongs to an earlier datagram, such as one that met nobody.
        _ = socket.send(&next.to_be_bytes());
        next += 1;
        thread::sleep(EVERY);
    }
    let begun = Instant::now();
    // Once the receiver has closed its socket, its system answers so.
    while socket.send(&LAST.to_be_bytes()).is_ok() && begun.elapsed() < LONG {
        thread::sleep(10 * EVERY);
    }
    next
}

/// Receives datagrams until one has the number [`LAST`]. Returns the numbers in the order of their arrival.
fn receive(
    socket: &UdpSocket,
    (received, longest_ns): (Arc<AtomicU64>, Arc<AtomicU64>),
) -> Vec<u32> {
    let (mut numbers, mut last) = (Vec::new(), None::<Instant>);
    loop {
        let mut number = [0; 4];
        socket.recv(&mut number).unwrap();
        let (number, now) = (u32::from_be_bytes(number), Instant::now());
        if number == LAST {
            return numbers;
        }
        let gap = last.map_or(Duration::ZERO, |last| now - last);
        longest_ns.fetch_max(gap.as_nanos() as u64, Ordering::Relaxed);
        last = Some(now);
        numbers.push(number);
        received.fetch_add(1, Ordering::Relaxed);
    }
}
