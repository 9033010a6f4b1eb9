//! A peer, a host, and the splitter between them.

use rxo_ack::{AckSlot, Delivered, MAX_ACKS_PER_STRETCH, PassReason, SplitConfig, Splitter};
use rxo_testkit::naive::{Reading, read};
use rxo_testkit::{Packet, seg};
use rxo_wire::{SeqNumber, parse};

/// The payload length of a full-sized segment, in bytes.
pub(crate) const FULL: u32 = 1_448;

/// The ACKs sent for one frame of the host, including the frame itself: ACK number, window, TSecr.
pub(crate) type Sent = Vec<(u32, u16, u32)>;

pub(crate) struct World {
    pub(crate) splitter: Splitter,
}

impl World {
    pub(crate) fn new(every: u16) -> Self {
        let config = SplitConfig { every, flows: 4, ..SplitConfig::new(1) };
        Self { splitter: Splitter::new(config).expect("a valid configuration") }
    }

    /// Creates a world in which the host has acknowledged up to `ack`.
    pub(crate) fn at(every: u16, ack: u32) -> Self {
        let mut world = Self::new(every);
        world.segment(ack.wrapping_sub(FULL), FULL, 0);
        assert_eq!(world.ack(ack).len(), 1);
        world
    }

    /// Delivers an aggregate of `bytes` to the host, in full-sized segments.
    pub(crate) fn aggregate(&mut self, seq: u32, bytes: u32, tsval: u32) {
        let key = parse(&data(seq, 1, tsval).bytes()).expect("a frame").key;
        let delivered = Delivered {
            seq: SeqNumber(seq),
            payload_bytes: bytes,
            segment_bytes: FULL as u16,
            tsval: Some(tsval),
            fin: false,
        };
        self.splitter.delivered(&key, &delivered);
    }

    /// Delivers one segment to the host.
    pub(crate) fn segment(&mut self, seq: u32, bytes: u32, tsval: u32) {
        self.give(data(seq, bytes, tsval));
    }

    pub(crate) fn give(&mut self, packet: Packet) {
        self.splitter.delivered_frame(packet.frame().borrowed());
    }

    /// Sends a pure ACK from the host.
    pub(crate) fn ack(&mut self, ack: u32) -> Sent {
        self.send(host(ack))
    }

    /// Sends `packet` from the host. Returns the resulting frames, parsed by the naive reader.
    pub(crate) fn send(&mut self, packet: Packet) -> Sent {
        let frame = packet.frame();
        let mut memory = [AckSlot::EMPTY; MAX_ACKS_PER_STRETCH];
        let mut left = Vec::new();
        if let Some(template) = self.splitter.split(frame.borrowed()) {
            let expanded = template.expand(&mut memory).expect("room for all");
            left.extend(expanded.iter().map(|frame| numbers(&frame)));
        }
        left.push(numbers(&frame.borrowed()));
        left
    }

    pub(crate) fn passed(&self, reason: PassReason) -> u64 {
        self.splitter.counters().passed(reason)
    }
}

/// Builds a data segment of the peer.
pub(crate) fn data(seq: u32, bytes: u32, tsval: u32) -> Packet {
    seg().seq(seq).len(bytes as usize).ts(tsval, 1)
}

/// Builds a pure ACK of the host.
pub(crate) fn host(ack: u32) -> Packet {
    seg().reply().pure_ack().ack(ack).window(500).ts(9, 8)
}

pub(crate) fn acks(sent: &Sent) -> Vec<u32> {
    sent.iter().map(|(ack, ..)| *ack).collect()
}

fn numbers(frame: &rxo_frame::Frame<&[u8]>) -> (u32, u16, u32) {
    let Reading::Segment(seen) = read(frame, rxo_frame::LinkKind::Ethernet) else {
        panic!("not a segment");
    };
    assert!(seen.checksum_ok && seen.ip_checksum_ok);
    let echo = seen.options.get(8..12).and_then(|bytes| bytes.first_chunk().copied());
    (seen.ack, seen.window, echo.map_or(0, u32::from_be_bytes))
}
