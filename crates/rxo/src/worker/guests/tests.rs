//! Order across hubs: hubs and guests take their turns in any order, on virtual time, and a table says which frames
//! each receiver must have, in which order for each flow.

use std::time::Duration;

use proptest::prelude::*;
use rxo_device::{MemoryLink, MemoryOptions, MemorySink, MemorySource};
use rxo_frame::{Frame, Instant};
use rxo_wire::queue_of;

use super::hub::Hub;
use super::{Budget, Guests};
use crate::switch::{MacAddress, PortSettings, Switch, SwitchOptions, Vlans};
use crate::worker::looped::Looped as _;
use crate::worker::{Awake, Duplex, Readings, WorkerConfig};

/// The receivers: three guests, and the peer behind the nic.
const PEER: u8 = 3;
/// A frame of this flow number is no IP packet.
const NO_IP: u8 = 0;
/// The guest without a fixed address.
const LEARNING: u8 = 2;
/// The offset of a frame's flow and number.
const TEXT: usize = 54;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Sends a frame of this flow between two of the receivers.
    Send(u8, u8, u8),
    Hub(u8),
    Guest(u8),
    /// Sets the free space of a queue of the nic.
    Room(u8, Option<u8>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..=PEER, 0..=PEER, 0..6_u8).prop_map(|(from, to, flow)| Step::Send(from, to, flow)),
        2 => (0..4_u8).prop_map(Step::Hub),
        3 => (0..PEER).prop_map(Step::Guest),
        1 => (0..4_u8, prop::option::of(0..4_u8)).prop_map(|(hub, room)| Step::Room(hub, room)),
    ];
    prop::collection::vec(step, 1..400)
}

fn mac(of: u8) -> MacAddress {
    MacAddress([0x52, 0x54, 0, 0, 0, of])
}

/// Creates frame `number` of a flow between two receivers.
fn frame((from, to, flow): (u8, u8, u8), number: u32) -> Frame<Vec<u8>> {
    let mut bytes = [mac(to).0, mac(from).0].concat();
    bytes.extend(if flow == NO_IP { [0x88, 0xb5] } else { [8, 0] });
    bytes.extend([0x45, 0, 0, 45, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    bytes.extend([0x9c, 0x40 + flow, 1, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff]);
    bytes.resize(TEXT, 0);
    bytes.extend([from, to, flow]);
    bytes.extend(number.to_be_bytes());
    Frame::new(bytes, Instant::ZERO)
}

/// Both links of a device: from it, and to it.
struct Links([MemoryLink; 2]);

impl Links {
    fn new() -> Self {
        Self(
            [MemoryOptions { most_packets: 4_096, ..MemoryOptions::default() }; 2]
                .map(MemoryLink::new),
        )
    }

    fn ends(&self) -> Duplex<MemorySource, MemorySink> {
        Duplex { source: self.0[0].source(), sink: self.0[1].sink() }
    }
}

struct World {
    guests: Guests<MemorySource, MemorySink, MemorySource, MemorySink>,
    queues: Vec<Links>,
    hosts: Vec<Links>,
    now: Instant,
}

impl World {
    fn new(queues: usize, budget: Budget) -> Self {
        let links = |count| (0..count).map(|_| Links::new()).collect::<Vec<_>>();
        let (queues, hosts) = (links(queues), links(PEER.into()));
        let port =
            |fixed: Option<u8>| PortSettings { vlans: Vlans::Only(0), fixed: fixed.map(mac) };
        let ports = [port(None), port(Some(0)), port(Some(1)), port(None)];
        let switch = Switch::new(ports.to_vec(), SwitchOptions::default()).unwrap();
        let config =
            WorkerConfig { overload: None, ..WorkerConfig::new(rxo_coalesce::Policy::none()) };
        let mut nics = queues.iter().map(Links::ends);
        let nics = (nics.next().unwrap(), nics.collect());
        let guests =
            Guests::on_queues(nics, hosts.iter().map(Links::ends).collect(), switch, config)
                .unwrap();
        let guests = guests.limited(&[budget; PEER as usize]);
        Self { guests, queues, hosts, now: Instant::from_micros(1) }
    }

    fn hub(&mut self, n: usize) -> &mut Hub<MemorySource, MemorySink> {
        match n {
            0 => &mut self.guests.hub,
            n => &mut self.guests.further[n - 1].hub,
        }
    }

    /// Sends a frame as its device would: a frame of the peer comes by the queue of its flow.
    fn send(&self, frame: &Frame<Vec<u8>>) {
        let from = frame.bytes[TEXT];
        let queue = queue_of(&frame.bytes, self.queues.len() as u32) as usize;
        let link = if from == PEER { &self.queues[queue] } else { &self.hosts[usize::from(from)] };
        link.0[0].push(frame);
    }

    /// Makes a step; numbers beyond the hubs mean the others.
    fn step(&mut self, step: Step) {
        self.now = self.now + Duration::from_micros(1);
        let (now, queues) = (self.now, self.queues.len());
        match step {
            Step::Send(..) => {}
            Step::Hub(n) => {
                let hub = self.hub(usize::from(n) % queues);
                hub.receive(true, |_| now).unwrap();
                hub.serve(now).unwrap();
            }
            Step::Guest(n) => {
                self.guests.workers[usize::from(n)].turn(|_| now, Awake::ALL).unwrap();
            }
            Step::Room(n, room) => {
                self.queues[usize::from(n) % queues].0[1].set_room(room.map(usize::from));
            }
        }
    }

    /// Gives all devices free space, and makes steps until nothing is left to do.
    fn finish(&mut self) -> Readings {
        for round in 0..100 {
            for n in 0..4 {
                self.step(Step::Room(n, None));
                self.step(Step::Hub(n));
                self.step(Step::Guest(n % PEER));
            }
            self.now = self.now + Duration::from_millis(round);
        }
        self.guests.further.iter_mut().for_each(|further| further.check_balance());
        self.guests.check_balance();
        self.guests.reading()
    }

    /// Takes the numbers of the frames of a flow that its receiver has, in the order in which they came.
    fn received(&self) -> impl Fn((u8, u8, u8)) -> Vec<u32> + use<> {
        let of = |links: &[Links]| -> Vec<Vec<u8>> {
            let sent = links.iter().flat_map(|links| links.0[1].take_all());
            sent.map(|sent| sent.bytes[TEXT..].to_vec()).collect()
        };
        let all: Vec<_> = self.hosts.chunks(1).map(of).chain([of(&self.queues)]).collect();
        move |(from, to, flow)| {
            let own = all[usize::from(to)].iter().filter(|text| text[..3] == [from, to, flow]);
            own.map(|text| u32::from_be_bytes(text[3..].try_into().unwrap())).collect()
        }
    }
}

proptest! {
    /// Whichever hub carries it, each flow arrives complete and in order, and every frame is counted.
    #[test]
    fn flows_across_hubs_stay_in_order_and_nothing_is_lost(queues in 1..5_usize, steps in steps()) {
        let mut world = World::new(queues, Budget { storm: None, ..Budget::default() });
        let mut sent = std::collections::HashMap::<_, u32>::new();
        for step in steps {
            if let Step::Send(from, to, flow) = step
                && from != to
            {
                let number = sent.entry((from, to, flow)).or_default();
                world.send(&frame((from, to, flow), *number));
                *number += 1;
            }
            world.step(step);
        }
        let Readings { all, guests, workers, switch } = world.finish();
        prop_assert_eq!(all.imbalance.total(), 0, "{:?}", all.imbalance);
        let received = world.received();
        for (flow, count) in &sent {
            prop_assert_eq!(received(*flow), (0..*count).collect::<Vec<_>>(), "{:?}", flow);
        }
        let total: u64 = sent.values().map(|count| u64::from(*count)).sum();
        prop_assert_eq!(switch.unwrap().frames(), total);
        let lost = guests.iter().map(|it| it.nic_in.ring_drops + it.nic_out.dropped_frames);
        prop_assert_eq!(lost.sum::<u64>(), 0);
        let is_one = queues == 1;
        prop_assert_eq!(workers.len(), if is_one { 0 } else { queues });
        if !is_one {
            prop_assert_eq!(workers.iter().map(|it| it.nic_in.frames).sum::<u64>(), all.nic_in.frames);
            prop_assert_eq!(workers.iter().map(|it| it.nic_out.frames).sum::<u64>(), all.nic_out.frames);
        }
    }
}

/// The flows of a guest to the peer, one at least on each of three hubs.
const FLOWS: [(u8, u8, u8); 5] =
    [(0, PEER, 1), (0, PEER, 2), (0, PEER, 3), (0, PEER, 4), (0, PEER, 5)];

#[test]
fn a_guest_has_one_budget_at_all_hubs_together() {
    let bytes = frame(FLOWS[0], 0).bytes.len() as u64;
    // A frame a millisecond, and none in advance.
    let rate = Budget { rate: Some(1_000 * bytes), burst: bytes, ..Budget::default() };
    let mut world = World::new(3, rate);
    for number in 0..40 {
        FLOWS.iter().for_each(|flow| world.send(&frame(*flow, number)));
    }
    let begun = world.now;
    let mut left = 0;
    while world.now < begun + Duration::from_millis(100) {
        (0..3).for_each(|n| {
            world.step(Step::Guest(0));
            world.step(Step::Hub(n));
        });
        world.now = world.now + Duration::from_micros(50);
        left = world.queues.iter().map(|queue| queue.0[1].packets()).sum();
        let passed_ms = world.now.since(begun).as_millis() as usize;
        assert!(left <= passed_ms + 2, "{left} after {passed_ms} ms");
    }
    assert!(left >= 98, "{left}");
    // No hub keeps the others from their turn.
    let received = world.received();
    assert!(FLOWS.iter().all(|flow| received(*flow).len() >= 10), "{:?}", FLOWS.map(&received));
}

#[test]
fn an_address_that_one_hub_has_learned_is_known_to_all() {
    let mut world = World::new(4, Budget::default());
    // The first hub learns the address, and that it leaves, from frames that are no IP packets.
    world.send(&frame((LEARNING, PEER, NO_IP), 0));
    (0..4).for_each(|_| {
        world.step(Step::Guest(LEARNING));
        world.step(Step::Hub(0));
    });
    let flooded = |world: &mut World| world.guests.reading().switch.unwrap().flooded;
    let before = flooded(&mut world);
    (1..5).for_each(|flow| world.send(&frame((PEER, LEARNING, flow), 0)));
    (0..4).for_each(|n| world.step(Step::Hub(n)));
    assert_eq!(flooded(&mut world), before, "its port is known");
    let totals = world.finish();
    let received = world.received();
    assert!((1..5).all(|flow| received((PEER, LEARNING, flow)) == [0]));
    assert_eq!(totals.switch.unwrap().learned, 2);
}
