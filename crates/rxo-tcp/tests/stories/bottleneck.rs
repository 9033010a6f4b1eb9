//! Several connections over one bottleneck: a link with a rate and a queue, on virtual time. Acknowledgements
//! return without queueing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rxo_frame::{Duration, Instant};
use rxo_tcp::{Config, Connection, Secret};
use rxo_wire::FlowKey;

use crate::harness::wire::{Wire, cut};

/// The properties of the bottleneck.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    pub(crate) bytes_per_ms: u64,
    /// The delay in one direction.
    pub(crate) delay: Duration,
    /// The longest time that a segment may wait before it is dropped.
    pub(crate) queue: Duration,
    /// The number of segments per 1000 that are lost at random.
    pub(crate) loss: u64,
}

pub(crate) struct Flow {
    /// The two ends of a flow: first the sender, then the receiver.
    pub(crate) ends: [Connection<Vec<u8>>; 2],
    /// `true` if the sender has anything to send.
    pub(crate) is_active: bool,
    pub(crate) received_bytes: u64,
}

pub(crate) struct Bottleneck {
    pub(crate) flows: Vec<Flow>,
    pub(crate) path: Path,
    pub(crate) now: Instant,
    /// The segments since [`Bottleneck::measure`]: their number, their total waiting time, and the number
    /// dropped.
    pub(crate) waits: (u32, Duration, u32),
    random: u64,
    free_at: Instant,
    /// The arrivals of segments: the time and a counter for the order, then the flow and the receiving end.
    flights: BinaryHeap<Reverse<(Instant, u64, usize, usize)>>,
    wires: Vec<Option<Wire>>,
}

impl Bottleneck {
    pub(crate) fn new(path: Path, settings: &[Config]) -> Self {
        let now = Instant::from_micros(1_000_000);
        let flows = settings.iter().zip(1..).map(|(config, number)| Flow::new(config, number, now));
        Self {
            flows: flows.collect(),
            path,
            now,
            waits: (0, Duration::ZERO, 0),
            random: 7,
            free_at: now,
            flights: BinaryHeap::new(),
            wires: Vec::new(),
        }
    }

    /// Runs for `time`. Returns the number of bytes that each flow received in this time.
    pub(crate) fn run(&mut self, time: Duration) -> Vec<u64> {
        let (end, before) = (self.now + time, self.received());
        self.waits = (0, Duration::ZERO, 0);
        while self.step(end) {}
        self.now = end;
        self.received().iter().zip(before).map(|(after, before)| after - before).collect()
    }

    /// Returns the mean time that a segment waited for the link.
    pub(crate) fn mean_wait(&self) -> Duration {
        self.waits.1 / self.waits.0.max(1)
    }

    fn received(&self) -> Vec<u64> {
        self.flows.iter().map(|flow| flow.received_bytes).collect()
    }

    fn step(&mut self, end: Instant) -> bool {
        for number in 0..self.flows.len() {
            for (from, wire) in self.flows[number].leave(self.now) {
                self.carry(number, from, wire);
            }
        }
        let arrival = self.flights.peek().map(|Reverse((at, ..))| *at);
        let timers = self.flows.iter().flat_map(|flow| &flow.ends).filter_map(Connection::poll_at);
        let Some(next) = arrival.into_iter().chain(timers).min().filter(|at| *at <= end) else {
            return false;
        };
        self.now = self.now.max(next);
        while let Some(Reverse((at, place, flow, to))) = self.flights.peek().copied()
            && at <= self.now
        {
            self.flights.pop();
            if let Some(wire) = self.wires[place as usize].take() {
                self.flows[flow].ends[to].on_arrival(self.now, wire.into_segment(at).into());
            }
        }
        for flow in &mut self.flows {
            flow.pass(self.now);
        }
        true
    }

    fn carry(&mut self, flow: usize, from: usize, wire: Wire) {
        let mut at = self.now;
        if from == 0 {
            let start = self.free_at.max(self.now);
            let wait = start.since(self.now);
            if wait > self.path.queue || self.is_lost() {
                self.waits.2 += 1;
                return;
            }
            (self.waits.0, self.waits.1) = (self.waits.0 + 1, self.waits.1 + wait);
            let bytes = wire.text.len() as u64 + 66;
            self.free_at = start + Duration::from_nanos(bytes * 1_000_000 / self.path.bytes_per_ms);
            at = self.free_at;
        }
        let place = self.wires.len() as u64;
        self.wires.push(Some(wire));
        self.flights.push(Reverse((at + self.path.delay, place, flow, 1 - from)));
    }

    fn is_lost(&mut self) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 1_000 < self.path.loss
    }
}

impl Flow {
    fn new(config: &Config, number: u32, now: Instant) -> Self {
        let there = FlowKey::v4(number, 99, 0x1388_0050, 0);
        let back = FlowKey::v4(99, number, 0x0050_1388, 0);
        let secret = Secret([number.into(), 2]);
        let client = Connection::open_active(config.clone(), there, secret, now);
        let server = Connection::open_passive(config.clone(), back, secret);
        let ends = [client, server].map(|opened| opened.expect("settings that can be"));
        Self { ends, is_active: true, received_bytes: 0 }
    }

    /// Returns the segments that are sent now, each with the end that sends it.
    fn leave(&mut self, now: Instant) -> Vec<(usize, Wire)> {
        let room = self.ends[0].send_room();
        if self.is_active && room > 0 {
            _ = self.ends[0].send(&vec![7; room]);
        }
        self.received_bytes += self.ends[1].consume(usize::MAX) as u64;
        let mut leaving = Vec::new();
        for (from, end) in self.ends.iter_mut().enumerate() {
            let mut wires = Vec::new();
            while let Some(transmit) = end.poll_transmit(now) {
                cut(&transmit, &mut wires);
            }
            leaving.extend(wires.into_iter().map(|wire| (from, wire)));
        }
        leaving
    }

    fn pass(&mut self, now: Instant) {
        for end in &mut self.ends {
            if end.poll_at().is_some_and(|at| at <= now) {
                end.on_timeout(now);
            }
            if let Some(wanted) = end.wants_buffers(now) {
                end.set_buffers(wanted);
            }
        }
    }
}
