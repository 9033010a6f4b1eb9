//! Tests of the switch in virtual time: single rules, and a property test against a naive model.
#![allow(clippy::unwrap_used, reason = "tests, of which the lint does not see the helpers")]

mod forged;
mod harness;
mod model;
mod stories;

use std::num::NonZeroU16;

use rxo::Frame;
use rxo::frame::VlanTag;
use rxo::switch::{MacAddress, Port, PortSettings, Vlans};

/// Returns the address of the device with this number.
fn mac(number: u8) -> MacAddress {
    MacAddress([0x52, 0x54, 0, 0, 0, number])
}

fn port(number: usize) -> Port {
    Port::new(number)
}

fn trunk() -> PortSettings {
    PortSettings { vlans: Vlans::All, fixed: None }
}

fn access(vlan: u16) -> PortSettings {
    PortSettings { vlans: Vlans::Only(vlan), fixed: None }
}

/// The position of a frame's VLAN tag.
#[derive(Clone, Copy, Debug)]
enum Tag {
    None,
    InBytes(u16),
    TakenByDevice(u16),
}

fn frame(destination: MacAddress, source: MacAddress, tag: Tag) -> Frame<Vec<u8>> {
    let mut bytes = [destination.0, source.0].concat();
    if let Tag::InBytes(vlan) = tag {
        bytes.extend([0x81, 0x00]);
        bytes.extend(vlan.to_be_bytes());
    }
    bytes.extend([0x08, 0x00, 1, 2, 3, 4]);
    let mut frame = Frame::new(bytes, rxo::Instant::ZERO);
    if let Tag::TakenByDevice(vlan) = tag {
        frame.vlan = NonZeroU16::new(0x8100).map(|tpid| VlanTag { tpid, tci: vlan | 0x6000 });
    }
    frame
}
