//! Compares the switch with a model that keeps all frames in one list.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use rxo::Instant;
use rxo::switch::{Forward, MacAddress, Port, PortSettings, Switch, SwitchOptions, Vlans};
use rxo_testkit::script::property;

use crate::{Tag, frame, mac, port};

const AGEING: Duration = Duration::from_secs(5);

/// A frame that arrived.
#[derive(Clone, Debug)]
struct Seen {
    at: Instant,
    port: usize,
    vlan: u16,
    source: MacAddress,
}

/// A naive switch that decides from all frames that arrived.
struct Model {
    ports: Vec<PortSettings>,
    seen: Vec<Seen>,
}

impl Model {
    /// Returns the ports that a frame leaves through, or `None` if it is dropped.
    fn forward(&mut self, seen: Seen, destination: MacAddress) -> Option<Vec<usize>> {
        let Seen { at, port, vlan, source } = seen.clone();
        let owner = |mac| self.owner(vlan, mac);
        if self.ports[port].fixed.is_some_and(|own| own != source)
            || owner(source).is_some_and(|other| other != port)
        {
            return None;
        }
        self.seen.push(seen);
        let others = |learning_only: bool| {
            let is_meant = |(index, settings): &(usize, &PortSettings)| {
                let is_member = match settings.vlans {
                    Vlans::All => true,
                    Vlans::Only(own) => own == vlan,
                };
                *index != port && is_member && !(learning_only && settings.fixed.is_some())
            };
            let ports = self.ports.iter().enumerate().filter(is_meant);
            ports.map(|(index, _)| index).collect::<Vec<_>>()
        };
        if destination == MacAddress([0xff; 6]) {
            return Some(others(false));
        }
        let is_of = |seen: &&Seen| seen.vlan == vlan && seen.source == destination;
        let last = self.seen.iter().rev().find(is_of);
        let recent = last.filter(|last| at.since(last.at) <= AGEING).map(|last| last.port);
        match self.owner(vlan, destination).or(recent) {
            Some(to) if to == port => None,
            Some(to) => Some(vec![to]),
            None => Some(others(true)),
        }
    }

    /// Returns the port to which an address is fixed.
    fn owner(&self, vlan: u16, mac: MacAddress) -> Option<usize> {
        let owns = |settings: &PortSettings| {
            let carries = match settings.vlans {
                Vlans::All => true,
                Vlans::Only(own) => own == vlan,
            };
            settings.fixed == Some(mac) && carries
        };
        self.ports.iter().position(owns)
    }
}

#[derive(Clone, Debug)]
struct Event {
    port: usize,
    source: u8,
    destination: u8,
    vlan: u16,
    by_device: bool,
    pause: Duration,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let pause = prop_oneof![
        8 => Just(Duration::ZERO),
        2 => (0_u64..3_000).prop_map(Duration::from_millis),
        1 => Just(AGEING),
    ];
    let event = (0..5_usize, 0..6_u8, 0..7_u8, 0..4_u16, any::<bool>(), pause);
    vec(
        event.prop_map(|(port, source, destination, vlan, by_device, pause)| Event {
            port,
            source,
            destination,
            vlan,
            by_device,
            pause,
        }),
        0..200,
    )
}

/// Creates a trunk, an access port without VLAN, two of VLAN 2, and a port with a fixed address.
fn ports() -> Vec<PortSettings> {
    let learning = |vlans| PortSettings { vlans, fixed: None };
    vec![
        learning(Vlans::All),
        learning(Vlans::Only(0)),
        learning(Vlans::Only(2)),
        learning(Vlans::Only(2)),
        PortSettings { vlans: Vlans::Only(0), fixed: Some(mac(5)) },
    ]
}

proptest! {
    #![proptest_config(property(300))]

    #[test]
    fn the_switch_does_what_the_model_says(events in events()) {
        let options = SwitchOptions { most_addresses: 64, ageing: AGEING };
        let mut switch = Switch::new(ports(), options).unwrap();
        let mut model = Model { ports: ports(), seen: Vec::new() };
        let mut now = Instant::ZERO;
        for event in events {
            now = now + event.pause;
            let (tag, vlan) = tag_and_vlan(&event);
            let destination = match event.destination {
                6 => MacAddress([0xff; 6]),
                number => mac(number),
            };
            let frame = frame(destination, mac(event.source), tag);
            let forward = switch.forward(port(event.port), &frame, now);
            let seen = Seen { at: now, port: event.port, vlan, source: mac(event.source) };
            let expected = model.forward(seen, destination);
            let ports = match forward {
                Forward::To(ports) => Some(ports.map(Port::index).collect::<Vec<_>>()),
                Forward::Drop(_) => None,
            };
            prop_assert_eq!(ports, expected, "{:?}", event);
        }
    }

    #[test]
    fn no_bytes_make_it_panic_or_grow(frames in vec(vec(any::<u8>(), 0..40), 0..200)) {
        let options = SwitchOptions { most_addresses: 2, ageing: AGEING };
        let mut switch = Switch::new(ports(), options).unwrap();
        for (number, bytes) in frames.into_iter().enumerate() {
            let from = port(number % 5);
            if let Forward::To(to) = switch.forward(from, &rxo::Frame::new(bytes, Instant::ZERO), Instant::ZERO) {
                prop_assert!(!to.contains(from), "a frame went back");
            }
            prop_assert!(switch.address_count() <= 8);
        }
    }
}

/// Returns the tag of a frame, and its VLAN: that of the tag on a trunk port, and that of the port on an
/// access port.
fn tag_and_vlan(event: &Event) -> (Tag, u16) {
    match ports()[event.port].vlans {
        Vlans::Only(own) => (Tag::None, own),
        Vlans::All if event.vlan == 0 => (Tag::None, 0),
        Vlans::All if event.by_device => (Tag::TakenByDevice(event.vlan), event.vlan),
        Vlans::All => (Tag::InBytes(event.vlan), event.vlan),
    }
}
