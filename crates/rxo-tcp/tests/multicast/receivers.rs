//! The receivers of a room: they take packets from their links, restore lost segments, read, and acknowledge.

use std::collections::BTreeMap;

use rxo_tcp::{Arrival, Parity, ParityBlock};

use super::links::{ByGroup, To};
use super::room::{Receiver, Room};
use super::settings::ISS;
use super::wire::{Wire, cut};

impl Room {
    pub(super) fn deliver(&mut self) {
        let mut come: BTreeMap<usize, Vec<(ByGroup, Wire)>> = BTreeMap::new();
        let mut parity: Vec<(usize, Wire)> = Vec::new();
        while let Some(arrived) = self.links.arrived(self.now) {
            match arrived {
                (To::Sender(number), wire) => self.arrives(number, wire),
                (to @ (To::Collector(number) | To::Receiver(number, _)), wire)
                    if self.receivers[number].absent_until > self.now =>
                {
                    let Receiver { absent_until, keeps_segments, .. } = self.receivers[number];
                    if keeps_segments {
                        self.links.keep(to, wire, absent_until);
                    }
                }
                (To::Collector(number), wire) => {
                    come.entry(number).or_default();
                    parity.push((number, wire));
                }
                (To::Receiver(number, by_group), wire) => {
                    let receiver = &self.receivers[number];
                    let has_left = receiver.leaves_early && receiver.tcp.is_peer_done();
                    if !(by_group && has_left) {
                        come.entry(number).or_default().push((by_group, wire));
                    }
                }
            }
        }
        for (number, wires) in come {
            self.receives(number, &wires);
            let own = parity.iter().filter(|(to, _)| *to == number);
            self.restore_lost(number, own.map(|(_, wire)| wire));
            self.read(number);
            self.flush_receiver(number);
        }
    }

    /// Passes segments to receiver `number`: segments to the group and segments to this receiver alone.
    fn receives(&mut self, number: usize, wires: &[(ByGroup, Wire)]) {
        let (now, tcp) = (self.now, &mut self.receivers[number].tcp);
        for same in wires.chunk_by(|one, next| one.0 == next.0) {
            let segments: Vec<_> =
                same.iter().map(|(_, wire)| wire.clone().into_segment(now)).collect();
            match same[0].0 {
                true => tcp.on_group_arrival(now, Arrival::segments(segments)),
                false => tcp.on_arrival(now, Arrival::segments(segments)),
            }
        }
    }

    /// Passes parity packets to receiver `number`, which restores what it can. The oracle for the erasure code:
    /// as many packets as lost segments restore the block, and the text is the stream's.
    pub(super) fn restore_lost<'a>(
        &mut self,
        number: usize,
        wires: impl Iterator<Item = &'a Wire>,
    ) {
        let Self { now, receivers, stream, .. } = self;
        let Receiver { tcp, collector: Some(collector), .. } = &mut receivers[number] else {
            return;
        };
        for wire in wires {
            let parity = Parity::read(&wire.text).expect("a parity packet");
            collector.take(tcp, &parity, *now);
        }
        let text_at = |block: &ParityBlock, index| {
            let (seq, bytes) = block.segment(index);
            let at = (seq - (ISS + 1)) as usize;
            (seq, stream[at..at + bytes].to_vec())
        };
        while let Some(incomplete) = collector.next(tcp) {
            assert!(incomplete.lost.len() <= incomplete.parity.len());
            for index in 0..incomplete.block.segments() {
                let (seq, text) = text_at(&incomplete.block, index);
                let mut known = vec![0; text.len()];
                let has_it = tcp.copy_segment(&incomplete.block, index, &mut known);
                assert_eq!(
                    has_it,
                    !incomplete.lost.contains(&index),
                    "segment {index} of {incomplete:?}"
                );
                assert!(!has_it || known == text, "segment {index} of {incomplete:?}");
                if !has_it {
                    tcp.restore(*now, seq, text);
                }
            }
        }
    }

    /// Passes a segment of receiver `number` to the sender.
    pub(crate) fn arrives(&mut self, number: usize, wire: Wire) {
        let side = &mut self.sides[number];
        let record = wire.record(self.now);
        if let (Some(id), Some(record), false) = (side.id, record, self.is_sleepless) {
            let is_to_be_served = self.group.on_acks(id, &mut side.tcp, [record], self.now);
            self.acks[usize::from(is_to_be_served)] += 1;
            if is_to_be_served {
                self.dirty.insert(number);
            }
            return;
        }
        if let Some(id) = side.id {
            self.group.before(id, &mut side.tcp, self.now);
        }
        match record {
            Some(record) => side.tcp.on_arrival(self.now, Arrival::acks([record])),
            None => side.tcp.on_arrival(self.now, wire.into_segment(self.now).into()),
        }
        self.dirty.insert(number);
    }

    /// Lets receiver `number` read without a limit again.
    pub(crate) fn read_again(&mut self, number: usize) {
        self.read(number);
        self.flush_receiver(number);
    }

    pub(super) fn read(&mut self, number: usize) {
        let receiver = &mut self.receivers[number];
        let mut read = 0;
        for piece in receiver.tcp.readable() {
            let at = receiver.read + read;
            let room = receiver.reads_at_most.saturating_sub(at).min(piece.len());
            assert!(piece[..room] == self.stream[at..at + room], "byte {at} of receiver {number}");
            read += room;
        }
        receiver.read += read;
        receiver.tcp.consume(read);
        if receiver.tcp.is_peer_done() && !receiver.is_done {
            receiver.is_done = true;
            let _ = receiver.tcp.shutdown();
        }
    }

    pub(super) fn flush_receiver(&mut self, number: usize) {
        let mut leaving = Vec::new();
        while let Some(transmit) = self.receivers[number].tcp.poll_transmit(self.now) {
            cut(&transmit, &mut leaving);
        }
        let receiver = &mut self.receivers[number];
        if receiver.tcp.is_peer_done() && !leaving.is_empty() && receiver.last_acks_lost > 0 {
            receiver.last_acks_lost -= 1;
            return;
        }
        let at = self.now + self.stagger * number as u32;
        leaving.into_iter().for_each(|wire| self.links.carry(To::Sender(number), wire, at));
    }
}
