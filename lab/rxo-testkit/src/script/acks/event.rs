//! An event of a script of pure ACKs.

use core::num::NonZeroU16;

use rxo_frame::{Duration, LinkKind, VlanTag};

use super::flow::AckFlow;
use crate::script::Step;
use crate::script::change::changed;
use crate::script::maker::{Event, Maker};
use crate::{Packet, arp, udp};

const ECE: u16 = 0x040;
const CWR: u16 = 0x080;
const AE: u16 = 0x100;
const MOST_IN_RUN: u8 = 20;
/// The changes of [`changed`] that keep the acknowledgement number and its offset.
const ODD: [u8; 31] = [
    1, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17, 18, 19, 22, 23, 24, 25, 26, 33, 36, 40, 48,
    49, 50, 51, 52, 53, 54,
];

impl Maker<AckFlow> {
    pub(super) fn event(&mut self, event: Event) {
        match event.kind % 64 {
            0..=17 => self.advance(event),
            18..=21 => self.run(event),
            22..=24 => self.duplicates(event),
            25..=28 => self.window(event),
            29 => self.go_back(event),
            30 => self.time(event),
            31..=36 => self.selective(event),
            37..=39 => self.mark(event),
            40 => self.keep_alive(event),
            41..=43 => self.data(event),
            44..=46 => self.odd(event),
            47 => self.shape(event),
            48 => self.tag(event),
            49 => self.repeat(usize::from(event.value % 8) + 1),
            50 => self.swap(),
            51 => self.other(event),
            52 => self.step(Step::Push),
            53..=57 => self.poll(event),
            58 => self.step(Step::EndOfPoll),
            59 => self.wait(event),
            60 => self.step([Step::Flush, Step::Poll][usize::from(event.value > 40)]),
            _ => self.advance(event),
        }
    }

    fn link(&self) -> LinkKind {
        self.script.setup.link
    }

    /// Adds a pure ACK with the flow's current numbers, changed by `change`.
    fn ack(&mut self, event: Event, change: impl FnOnce(Packet) -> Packet) {
        self.send(event, 0, change);
    }

    fn send(&mut self, event: Event, len: usize, change: impl FnOnce(Packet) -> Packet) {
        let link = self.link();
        let flow = self.flow(event);
        let packet = change(flow.segment(len, link));
        let tag = flow.device_tag();
        let mut frame = packet.frame();
        frame.vlan = tag.and_then(tagged);
        self.add(frame);
        self.pass(u64::from(event.time % 4) * 100);
    }

    /// Acknowledges one, two or three more segments.
    fn advance(&mut self, event: Event) {
        let flow = self.flow(event);
        flow.advance(1 + u32::from(event.count % 3));
        flow.time.0 = flow.time.0.wrapping_add(u32::from(event.value % 3));
        self.ack(event, |packet| packet);
    }

    fn run(&mut self, event: Event) {
        for _ in 0..event.value % MOST_IN_RUN {
            self.advance(event);
        }
    }

    /// Adds one to three duplicate ACKs, some with a later timestamp.
    fn duplicates(&mut self, event: Event) {
        for _ in 0..=event.value % 3 {
            let flow = self.flow(event);
            flow.time.0 = flow.time.0.wrapping_add(u32::from(event.count % 2));
            self.ack(event, |packet| packet);
        }
    }

    /// Opens the window, closes it, or changes it and changes it back.
    fn window(&mut self, event: Event) {
        let before = self.flow(event).window;
        self.flow(event).window = match event.value % 8 {
            0 => 0,
            1 => before / 2,
            2 => 500,
            _ => before.wrapping_add(u16::from(event.value)),
        };
        self.ack(event, |packet| packet);
        if event.count % 4 == 1 {
            self.flow(event).window = before;
            self.ack(event, |packet| packet);
        }
    }

    /// Adds an ACK that was overtaken.
    fn go_back(&mut self, event: Event) {
        let back = u32::from(event.value % 3 + 1) * 1448;
        self.ack(event, |packet| {
            let number = packet.ack.wrapping_sub(back);
            packet.ack(number)
        });
    }

    /// Makes the next timestamp later or earlier than usual.
    fn time(&mut self, event: Event) {
        let flow = self.flow(event);
        flow.time.0 = flow.time.0.wrapping_add(event.value as i8 as u32);
        flow.time.1 = flow.time.1.wrapping_add(u32::from(event.count));
        flow.advance(u32::from(event.change % 2));
        self.ack(event, |packet| packet);
    }

    /// Reports by SACK that something arrived out of order or twice.
    fn selective(&mut self, event: Event) {
        let flow = self.flow(event);
        match event.change % 8 {
            0..=3 => flow.beyond += 1 + u32::from(event.count % 2),
            4 | 5 => flow.advance(1),
            _ => {}
        }
        let mut blocks = vec![flow.block()];
        let (here, far) = (flow.place(0), flow.place(1 + u32::from(event.count % 32)));
        match event.value % 16 {
            0 => blocks.insert(0, (flow.place(u32::MAX), here)),
            1 => blocks.insert(0, (flow.place(1), flow.place(2))),
            2 => blocks.insert(0, (far, far.wrapping_add(1448))),
            3 | 4 => blocks.push((far, far.wrapping_add(1448))),
            5 => blocks = vec![(far, far.wrapping_add(u32::from(event.time)))],
            6 => blocks = vec![(here, far)],
            _ => {}
        }
        self.ack(event, |packet| packet.sack(&blocks));
    }

    /// Sets or clears an ECN mark: for good, or in one ACK.
    fn mark(&mut self, event: Event) {
        let bit = [ECE, ECE, CWR, AE][usize::from(event.change % 4)];
        let flow = self.flow(event);
        flow.advance(u32::from(event.count % 4));
        match event.value % 4 {
            0 => flow.marks ^= bit,
            1 => return self.ack(event, |packet| packet.flags(0x10 | bit)),
            2 => flow.traffic_class ^= 3,
            _ => return self.ack(event, |packet| packet.tos(event.value)),
        }
        self.ack(event, |packet| packet);
    }

    /// Adds a keep-alive: SEQ one below, with or without a byte of data.
    fn keep_alive(&mut self, event: Event) {
        let len = usize::from(event.value % 8 == 1);
        for _ in 0..=event.count % 2 {
            self.send(event, len, |packet| {
                let seq = packet.seq.wrapping_sub(1);
                packet.seq(seq)
            });
        }
    }

    fn data(&mut self, event: Event) {
        for _ in 0..=event.value % 4 {
            self.flow(event).advance(u32::from(event.change % 2));
            self.send(event, 100, |packet| packet);
            let flow = self.flow(event);
            flow.seq = flow.seq.wrapping_add(100);
        }
    }

    /// Adds an ACK with one unusual property.
    fn odd(&mut self, event: Event) {
        self.flow(event).advance(u32::from(event.count % 2));
        let number = ODD[usize::from(event.change) % ODD.len()];
        self.ack(event, |packet| changed(packet, number, event.value));
    }

    /// Changes the form of the flow's ACKs from here on.
    fn shape(&mut self, event: Event) {
        let flow = self.flow(event);
        match event.change % 4 {
            0 => flow.arrangement = event.value % 5,
            1 => flow.padding = [None, Some(0), Some(event.value)][usize::from(event.count % 3)],
            2 => flow.extension ^= 1,
            _ => flow.seq = flow.seq.wrapping_add(1),
        }
    }

    /// Gives the next ACK another VLAN or another priority.
    fn tag(&mut self, event: Event) {
        self.advance(event);
        if let Some(frame) = self.script.all_frames.last_mut() {
            frame.vlan = tagged(u16::from(event.value % 2) << 13 | 5);
        }
    }

    /// Adds a fragment, an invalid or truncated frame, another protocol, or a GSO frame.
    fn other(&mut self, event: Event) {
        let link = self.link();
        let flow = u32::from(event.flow);
        let packet = match event.value % 8 {
            0 => udp().flow(flow),
            1 => return self.add(arp().padded().frame()),
            2 => return self.send(event, 0, |packet| packet.df(false).fragment(0, true)),
            3 => return self.send(event, 0, |packet| packet.length_lie(9)),
            4 => return self.send(event, 0, |packet| packet.cut(30)),
            5 => return self.send(event, 0, |packet| packet.offset_lie(-1)),
            6 => udp().v6().flow(flow).fragment(1, true),
            _ => self.flow(event).segment(4344, link).already_aggregated(1448),
        };
        self.add(packet.frame());
    }

    fn wait(&mut self, event: Event) {
        self.pass(u64::from(event.time) * u64::from(event.value) * 50);
    }

    /// Advances time. Between most frames a little, so that each has its own arrival time.
    fn pass(&mut self, nanos: u64) {
        if nanos > 0 {
            let time = Duration::from_nanos(nanos);
            self.now = self.now + time;
            self.step(Step::Advance(time));
        }
    }
}

fn tagged(tci: u16) -> Option<VlanTag> {
    NonZeroU16::new(0x8100).map(|tpid| VlanTag { tpid, tci })
}
