//! Tests of two hosts with one address: starting the second host fails with an error, in whichever way the
//! conflict is detected.

use std::net::IpAddr;

use rxo::driver::Interface;
use rxo::live::DeviceOptions;
use rxo::live::host::{self, RunningHost, StartError};
use rxo_testbed::{Lab, LabOptions};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("an_address_of_linux_is_not_taken", linux_answers),
    ("two_hosts_of_a_system_do_not_share_an_address", two_of_ours),
];

fn start(lab: &Lab, address: IpAddr) -> Result<RunningHost, StartError> {
    let bits = if address.is_ipv4() { 24 } else { 64 };
    let config = host::config(vec![format!("{address}/{bits}").parse().unwrap()]);
    let name = format!("packet:{}", Lab::WIRE_INTERFACE).parse().unwrap();
    lab.host().run(|| host::start(&name, DeviceOptions::default(), config)).unwrap()
}

/// The peer's kernel answers the probes of ARP and of neighbour discovery.
fn linux_answers() {
    let lab = Lab::through_with(LabOptions::default()).unwrap();
    let (v4, v6) = Lab::PEER_ADDRESSES;
    for address in [IpAddr::from(v4), IpAddr::from(v6)] {
        match start(&lab, address) {
            Err(StartError::Conflict(conflict)) => {
                assert_eq!(conflict.address, address);
                assert_ne!(conflict.mac, own_mac(&lab), "it is the peer's");
            }
            other => panic!("{other:?}"),
        }
    }
    start(&lab, lab.host_address()).unwrap().stop().result.unwrap();
}

fn own_mac(lab: &Lab) -> [u8; 6] {
    let find = || Interface::find(Lab::WIRE_INTERFACE).unwrap().hardware_address().unwrap();
    lab.host().run(find).unwrap()
}

/// The two hosts have one Ethernet address, and do not receive each other's frames.
fn two_of_ours() {
    let lab = Lab::through_with(LabOptions::default()).unwrap();
    let first = start(&lab, lab.host_address()).unwrap();
    let said = start(&lab, lab.host_address()).unwrap_err().to_string();
    assert!(said.contains("another rxo of this system has it on"), "{said}");
    first.stop().result.unwrap();
    start(&lab, lab.host_address()).unwrap().stop().result.unwrap();
}
