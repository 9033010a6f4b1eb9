//! The modelled clients, and the link between them and the server, on virtual time.
//!
//! The link carries 10 Gbit/s and is a queue: what the server sends leaves it in order, and what answers it comes back
//! [`ROUND_TRIP`] later. Clients lose nothing and open no other window, so the server saturates the link, as in the
//! paper.

mod client;

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use rxo::wire::{Transport, parse};
use rxo::{ChecksumStatus, Frame, FrameSink, FrameSource, Instant};
use rxo_driver::Device;
use serde::{Deserialize, Serialize};

use self::client::{Client, Heard};
use super::case::AckRate;
use super::server::{MAC, PORT, SERVER};
use crate::modelled::{Ends, arp_answer};

/// The server, and the address of all clients.
const ENDS: Ends =
    Ends { client: Ipv4Addr::new(10, 0, 0, 2), server: SERVER, server_mac: MAC, server_port: PORT };

/// What clients have seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Bytes of files.
    pub(super) bytes: u64,
    /// Files that were complete.
    pub(super) files: u64,
    /// Segments with text.
    pub(super) segments: u64,
    /// Pure ACKs sent.
    pub(super) acks: u64,
    /// All packets sent.
    pub(super) packets: u64,
    /// Segments that came twice.
    pub(super) again: u64,
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

/// What clients do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    pub(super) clients: u16,
    pub(super) acks: AckRate,
    /// The number of files, and their bytes.
    pub(super) files: (u32, u64),
}

/// The link.
#[derive(Default)]
struct Link {
    /// When it has carried everything that the server sent.
    free: Instant,
    /// What comes back, in order.
    coming: VecDeque<Coming>,
}

/// A packet on its way to the server.
struct Coming {
    at: Instant,
    frame: Vec<u8>,
    is_pure_ack: bool,
}

/// All clients, and what is under way.
pub(super) struct Clients {
    habits: Habits,
    device: Device,
    clients: Vec<Client>,
    /// Clients that have opened.
    opened: usize,
    link: Link,
    received: Vec<Frame<rxo_driver::DeviceBuf>>,
    tally: Tally,
}

impl Clients {
    pub(super) fn new(habits: Habits, device: Device) -> Self {
        Self {
            habits,
            device,
            clients: (0..habits.clients).map(Client::new).collect(),
            opened: 0,
            link: Link::default(),
            received: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Answers the messages of the other end, which prepares.
    ///
    /// # Errors
    /// If the ring breaks.
    pub(super) fn attend(&mut self) -> Result<()> {
        self.device.source.receive(&mut self.received, 1)?;
        Ok(())
    }

    /// Takes everything that the server has sent until `now`, and sends what has come back by then.
    ///
    /// # Errors
    /// If the ring breaks, or the server sends what it should not.
    pub(super) fn step(&mut self, now: Instant) -> Result<Tally> {
        while self.device.source.receive(&mut self.received, MOST_FRAMES)? > 0 {}
        for frame in std::mem::take(&mut self.received) {
            self.hear(now, &frame)?;
        }
        for _ in 0..OPENED_A_STEP.min(self.clients.len() - self.opened) {
            let syn = self.clients[self.opened].open(ts_value(now))?;
            self.link.send(now, syn, false);
            self.opened += 1;
        }
        let due = self.link.coming.partition_point(|coming| coming.at <= now);
        let due: Vec<Coming> = self.link.coming.drain(..due).collect();
        self.tally.packets += due.len() as u64;
        self.tally.acks += due.iter().filter(|coming| coming.is_pure_ack).count() as u64;
        let frames = due.iter().map(|coming| Frame {
            checksum: ChecksumStatus::Verified,
            ..Frame::new(&coming.frame[..], now)
        });
        self.device.sink.transmit(frames)?;
        Ok(self.tally)
    }

    /// A frame of the server enters the link.
    fn hear(&mut self, now: Instant, frame: &Frame<rxo_driver::DeviceBuf>) -> Result<()> {
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
        let heard = Heard { seq: tcp.seq.0, flags: tcp.flags, ts_value: tcp.timestamp.value, text };
        let got = client.hear(heard)?;
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

    /// Acknowledges a frame with so much text in segments of so much, and asks for the next file if one is done.
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
            let is_due = match self.habits.acks {
                AckRate::Second => client.unacknowledged >= 2,
                AckRate::Merged => is_last,
            };
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
    /// Sends `frame` so that it arrives at `at`, or when what was sent before has arrived.
    fn send(&mut self, at: Instant, frame: Vec<u8>, is_pure_ack: bool) {
        let at = self.coming.back().map_or(at, |last| last.at.max(at));
        self.coming.push_back(Coming { at, frame, is_pure_ack });
    }
}

/// How long the link takes for a segment with so much text: its headers, preamble, checksum and gap are 90 bytes.
fn wire_time(text_bytes: usize) -> std::time::Duration {
    std::time::Duration::from_nanos((text_bytes as u64 + 90) * 8 / GBIT_PER_S)
}

/// The clients' clock, in milliseconds.
fn ts_value(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// The paper's link.
const GBIT_PER_S: u64 = 10;
/// From a frame's end on the link to what answers it.
pub(super) const ROUND_TRIP: std::time::Duration = std::time::Duration::from_micros(100);
const OPENED_A_STEP: usize = 4;
const MOST_FRAMES: usize = 256;
