//! Models the clients, and the link between them and the server, on virtual time.
//!
//! The link is a queue with a rate of 10 Gbit/s: the server's frames leave it in order, and answers come back
//! [`ROUND_TRIP`] later. Clients lose nothing and keep a constant window, so the server saturates the link,
//! as in the paper.

mod client;

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result};
use rxo::wire::{Transport, parse};
use rxo::{ChecksumStatus, Frame, FrameSink, FrameSource, Instant};
use rxo_driver::{Device, DeviceBuf};
use serde::{Deserialize, Serialize};

use self::client::Client;
use super::case::AckRate;
use super::server::{MAC, PORT, SERVER};
use crate::modelled::{CLIENT_MAC, Ends, WINDOW, arp_answer};

/// Addresses and ports of the server and of all clients.
const ENDS: Ends = Ends {
    client: Ipv4Addr::new(10, 0, 0, 2),
    client_mac: CLIENT_MAC,
    window: WINDOW,
    server: SERVER,
    server_mac: MAC,
    server_port: PORT,
};

/// Counts of the clients' traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tally {
    /// File bytes received, and files received completely.
    pub(super) bytes: u64,
    pub(super) files: u64,
    /// Data segments received; `again` counts those that were received before.
    pub(super) segments: u64,
    pub(super) again: u64,
    /// Pure ACKs sent, and all packets sent.
    pub(super) acks: u64,
    pub(super) packets: u64,
}

impl Tally {
    pub(super) const fn since(self, before: Self) -> Self {
        Self {
            bytes: self.bytes - before.bytes,
            files: self.files - before.files,
            segments: self.segments - before.segments,
            acks: self.acks - before.acks,
            packets: self.packets - before.packets,
            again: self.again - before.again,
        }
    }
}

/// Behaviour of the clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    pub(super) clients: u16,
    pub(super) acks: AckRate,
    /// Number of files, and the bytes of each.
    pub(super) files: (u32, u64),
}

/// State of the link.
#[derive(Default)]
struct Link {
    /// Time at which the link has carried everything that the server sent so far.
    free: Instant,
    /// Packets on their way to the server, in order.
    coming: VecDeque<Coming>,
}

/// A packet on its way to the server.
struct Coming {
    at: Instant,
    frame: Vec<u8>,
    is_pure_ack: bool,
}

/// All clients, and the packets in flight.
pub(super) struct Clients {
    habits: Habits,
    pub(super) device: Device,
    clients: Vec<Client>,
    /// Number of clients that have opened a connection.
    opened: usize,
    link: Link,
    tally: Tally,
}

impl Clients {
    pub(super) fn new(habits: Habits, device: Device) -> Self {
        let clients = (0..habits.clients).map(Client::new).collect();
        let (link, tally) = (Link::default(), Tally::default());
        Self { habits, device, clients, opened: 0, link, tally }
    }

    /// Receives everything that the server has sent until `now`, and sends the answers that are due by then.
    pub(super) fn step(&mut self, now: Instant) -> Result<Tally> {
        let mut received = Vec::new();
        while self.device.source.receive(&mut received, MOST_FRAMES)? > 0 {}
        received.iter().try_for_each(|frame| self.receive(now, frame))?;
        for _ in 0..OPENED_A_STEP.min(self.clients.len() - self.opened) {
            let syn = self.clients[self.opened].open(ts_value(now))?;
            self.link.send(now, syn, false);
            self.opened += 1;
        }
        let due = self.link.coming.partition_point(|coming| coming.at <= now);
        let due: Vec<Coming> = self.link.coming.drain(..due).collect();
        self.tally.packets += due.len() as u64;
        self.tally.acks += due.iter().filter(|coming| coming.is_pure_ack).count() as u64;
        let checksum = ChecksumStatus::Verified;
        let frames =
            due.iter().map(|coming| Frame { checksum, ..Frame::new(&coming.frame[..], now) });
        self.device.sink.transmit(frames)?;
        Ok(self.tally)
    }

    /// Puts a frame of the server onto the link, and processes it for its client.
    fn receive(&mut self, now: Instant, frame: &Frame<DeviceBuf>) -> Result<()> {
        let bytes = frame.bytes();
        if let Some(answer) = arp_answer(ENDS.client, bytes) {
            self.link.send(now, answer, false);
            return Ok(());
        }
        let Ok(parsed) = parse(bytes) else { return Ok(()) };
        let Transport::Tcp(tcp) = parsed.transport else { return Ok(()) };
        let text = &bytes[parsed.at.payload_range()];
        let place = Client::number(parsed.key.destination_port());
        let client = self.clients.get_mut(place).context("a packet for no client")?;
        let got = client.receive((tcp.seq, tcp.flags, tcp.timestamp.value), text)?;
        self.tally.bytes += got.bytes;
        if let Some(duplicate) = got.duplicate {
            self.tally.again += 1;
            let repeat = client.repeat(duplicate, ts_value(now))?;
            self.link.send(now + ROUND_TRIP, repeat, false);
            return Ok(());
        }
        let segment_bytes = frame.gso.map_or(text.len(), |gso| gso.size.get().into()).max(1);
        self.answer((now, place), (text.len(), segment_bytes), got.is_done)
    }

    /// Acknowledges a frame with `text_bytes` in segments of `segment_bytes`, and requests the next file if
    /// one is complete.
    fn answer(
        &mut self,
        (now, place): (Instant, usize),
        (text_bytes, segment_bytes): (usize, usize),
        is_done: bool,
    ) -> Result<()> {
        let (mut at, client) = (self.link.free.max(now), &mut self.clients[place]);
        let segments = text_bytes.div_ceil(segment_bytes);
        self.tally.segments += segments as u64;
        for segment in 1..=segments {
            let end = (segment * segment_bytes).min(text_bytes);
            at = at + wire_time(end - (segment - 1) * segment_bytes);
            client.unacknowledged += 1;
            let is_last = segment == segments;
            let is_due = self.habits.acks.is_due(client.unacknowledged, is_last);
            // The last ACK of a file goes with the next request.
            if is_due && !(is_last && is_done) {
                client.unacknowledged = 0;
                let back_at = at + ROUND_TRIP;
                let ack = client.ack((text_bytes - end) as u32, ts_value(back_at))?;
                self.link.send(back_at, ack, true);
            }
        }
        self.link.free = at;
        if is_done {
            client.unacknowledged = 0;
            self.tally.files += u64::from(text_bytes > 0);
            let back_at = at + ROUND_TRIP;
            let request = client.ask(self.habits.files, ts_value(back_at))?;
            self.link.send(back_at, request, false);
        }
        Ok(())
    }
}

impl Link {
    /// Schedules `frame` to arrive at `at`, but not before earlier frames.
    fn send(&mut self, at: Instant, frame: Vec<u8>, is_pure_ack: bool) {
        let at = self.coming.back().map_or(at, |last| last.at.max(at));
        self.coming.push_back(Coming { at, frame, is_pure_ack });
    }
}

/// Returns the link's transmission time for a segment with `text_bytes` of payload. Headers, preamble, frame
/// check sequence and gap are 90 bytes.
fn wire_time(text_bytes: usize) -> Duration {
    Duration::from_nanos((text_bytes as u64 + 90) * 8 / GBIT_PER_S)
}

/// Returns the clients' timestamp clock, in milliseconds.
fn ts_value(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// Rate of the paper's link.
const GBIT_PER_S: u64 = 10;
/// Time from the end of a frame on the link to the arrival of its answer.
const ROUND_TRIP: Duration = Duration::from_micros(100);
const OPENED_A_STEP: usize = 4;
const MOST_FRAMES: usize = 256;
