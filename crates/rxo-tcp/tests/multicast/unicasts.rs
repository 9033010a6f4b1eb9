//! Simulates as many ordinary downloads as a cast has receivers, over the same links, for comparison with the
//! cast.

use rxo_frame::{Duration, Instant, SharedBytes};
use rxo_tcp::{Arrival, Connection, Secret};
use rxo_wire::FlowKey;

use super::links::{Links, To};
use super::settings::{receiver_config, stream};
use super::wire::{Wire, cut};

/// One download: the sender's end, and the receiver's.
struct Download {
    from: Connection<Vec<u8>>,
    to: Connection<Vec<u8>>,
    rest: SharedBytes,
    read: usize,
}

pub(crate) struct Unicasts {
    pub(crate) now: Instant,
    pub(crate) links: Links,
    downloads: Vec<Download>,
    bytes: usize,
}

impl Unicasts {
    /// Opens `count` connections, and sends `bytes` bytes over each.
    pub(crate) fn new(count: usize, bytes: usize) -> Self {
        let now = Instant::from_micros(1_000_000);
        let text = stream(bytes);
        let downloads = (0..count).map(|number| download(number, text.clone(), now)).collect();
        Self { now, links: Links::new(), downloads, bytes }
    }

    /// Runs until each receiver has everything. Returns the time that this took.
    pub(crate) fn run(&mut self) -> Duration {
        let begun = self.now;
        self.begin();
        while self.downloads.iter().any(|it| it.read < self.bytes) {
            self.step();
            assert!(self.now.since(begun) < Duration::from_secs(3_600), "it does not end");
        }
        self.now.since(begun)
    }

    /// Begins the handshakes.
    pub(crate) fn begin(&mut self) {
        (0..self.downloads.len()).for_each(|number| self.serve(number));
    }

    /// Returns the number of bytes that the receivers have.
    pub(crate) fn read(&self) -> usize {
        self.downloads.iter().map(|it| it.read).sum()
    }

    /// Returns the time of the next event; `None` if there is none.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        let timers = self.downloads.iter().flat_map(|it| [it.from.poll_at(), it.to.poll_at()]);
        timers.chain([self.links.next_at()]).flatten().min()
    }

    /// Runs the next event.
    pub(crate) fn step(&mut self) {
        let next = self.next_event().expect("an event");
        self.now = self.now.max(next);
        let mut dirty = Vec::new();
        while let Some((to, wire)) = self.links.arrived(self.now) {
            let (number, tcp) = match to {
                To::Sender(number) => (number, &mut self.downloads[number].from),
                To::Receiver(number, _) | To::Collector(number) => {
                    (number, &mut self.downloads[number].to)
                }
            };
            arrives(tcp, wire, self.now);
            dirty.push(number);
        }
        for (number, download) in self.downloads.iter_mut().enumerate() {
            for tcp in [&mut download.from, &mut download.to] {
                if tcp.poll_at().is_some_and(|at| at <= self.now) {
                    tcp.on_timeout(self.now);
                    dirty.push(number);
                }
            }
        }
        dirty.dedup();
        dirty.into_iter().for_each(|number| self.serve(number));
    }

    fn serve(&mut self, number: usize) {
        let Self { now, links, downloads, .. } = self;
        let Download { from, to, rest, read } = &mut downloads[number];
        let got: usize = to.readable().map(<[u8]>::len).sum();
        to.consume(got);
        *read += got;
        // Before the handshake nothing is taken.
        let _ = from.send_shared(rest);
        let mut wires = Vec::new();
        while let Some(transmit) = from.poll_transmit(*now) {
            cut(&transmit, &mut wires);
        }
        for wire in wires.drain(..) {
            let at = links.has_left(*now, &wire);
            links.carry(To::Receiver(number, false), wire, at);
        }
        while let Some(transmit) = to.poll_transmit(*now) {
            cut(&transmit, &mut wires);
        }
        wires.into_iter().for_each(|wire| links.carry(To::Sender(number), wire, *now));
    }
}

fn arrives(tcp: &mut Connection<Vec<u8>>, wire: Wire, now: Instant) {
    match wire.record(now) {
        Some(record) => tcp.on_arrival(now, Arrival::acks([record])),
        None => tcp.on_arrival(now, wire.into_segment(now).into()),
    }
}

fn download(number: usize, rest: SharedBytes, now: Instant) -> Download {
    let address = 0x0a02_0000 + number as u32;
    let there = FlowKey::v4(address, 0x0a00_0001, 40_000 << 16 | 80, 0);
    let back = FlowKey::v4(0x0a00_0001, address, 80 << 16 | 40_000, 0);
    let secret = Secret([number as u64, 6]);
    let config = rxo_tcp::Config { receive_buffer_bytes: 2 << 20, ..receiver_config() };
    let to = Connection::open_active(config.clone(), there, secret, now).expect("valid settings");
    let from = Connection::open_passive(config, back, secret).expect("valid settings");
    Download { from, to, rest, read: 0 }
}
