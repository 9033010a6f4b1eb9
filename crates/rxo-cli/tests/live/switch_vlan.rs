//! `rxo guest` with guests in VLANs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use rxo::live::Station;
use rxo::switch::{PortSettings, Switch, SwitchOptions, Vlans};
use rxo::{Policy, WorkerConfig};
use rxo_driver::{Device, DeviceOptions};
use rxo_testbed::Lab;

use crate::Test;
use crate::endpoint::{connect, json, pattern, send_all};
use crate::process::{LONG, Rxo, spawn};
use crate::switch::{Sockets, address, received, send, send_from, totals};

pub(crate) const TESTS: &[Test] = &[
    ("guests_of_a_vlan_are_apart_from_others", apart),
    ("a_guest_of_a_vlan_reaches_the_peer_with_its_tag", tagged),
];

/// Guests 0 and 1 are in VLAN 7 and reach each other; guest 2 is in none and gets none of their frames.
fn apart() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("apart"));
    let flags = sockets.flags(&[",vlan=7", ",vlan=7", ""]);
    let (rxo, _) = Rxo::guests(lab.host(), &flags);
    let (sink, other) = (sockets.sink(&lab, 0), sockets.sink(&lab, 2));
    let (host, to) = (sockets.host(1), address(0));
    let source = format!("source {host} {to}:7000 --bytes 2000000 --json --interval 0s");
    send_from(&lab, &source);
    json(&sink.wait_with_output().unwrap());
    let bytes = pattern(1_000_000);
    send(lab.peer(), 2, &bytes);
    received(other, &bytes);
    let totals = totals(rxo);
    let got = totals["guests"][2]["bytes"].as_u64().unwrap();
    assert!(got < 1_500_000, "{got} bytes, of which a million are its own");
}

/// The peer joins VLAN 7 with a separate interface.
fn tagged() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("tagged"));
    let vlan = lab.peer().interface("vlan7");
    if vlan.create_vlan(&lab.peer().interface(Lab::PEER_INTERFACE), 7).is_ok() {
        return cross_tagged(&lab, &sockets);
    }
    // This kernel has no VLAN interfaces, so a TAP behind our own switch replaces it.
    let (stop, (ready, is_ready)) = (AtomicBool::new(false), mpsc::channel());
    thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        scope.spawn(|| lab.peer().run(|| tag_for_the_peer(&stop, &ready)).unwrap());
        is_ready.recv_timeout(LONG).unwrap();
        cross_tagged(&lab, &sockets);
    });
}

/// Sets a flag on drop, also during a panic.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Gives the peer a TAP `vlan7`, whose frames carry tag 7 on the peer's interface.
fn tag_for_the_peer(stop: &AtomicBool, ready: &mpsc::Sender<()>) {
    let open = |name: &str, bring_up| {
        let options = DeviceOptions { bring_up, ..DeviceOptions::default() };
        Device::open(&name.parse().unwrap(), options).unwrap()
    };
    let nic = open(&format!("packet:{}", Lab::PEER_INTERFACE), false);
    let tap = open("tap:vlan7", true);
    let ports = [Vlans::All, Vlans::Only(7)].map(|vlans| PortSettings { vlans, fixed: None });
    let switch = Switch::new(ports.to_vec(), SwitchOptions::default()).unwrap();
    let config = WorkerConfig::new(Policy::none());
    ready.send(()).unwrap();
    let station = Station::switched(nic, vec![tap], switch, config);
    station.run(stop, |_| {}).unwrap().result.unwrap();
}

/// Transfers from the peer's interface `vlan7` to a guest of VLAN 7. A guest of another VLAN gets none of the
/// frames.
fn cross_tagged(lab: &Lab, sockets: &Sockets) {
    let vlan = lab.peer().interface("vlan7");
    vlan.add_address([10, 78, 0, 1].into(), 24).unwrap();
    vlan.up().unwrap();
    let ports = [",vlan=7,mac=52:54:00:00:00:02", ",vlan=8"];
    let (rxo, _) = Rxo::guests(lab.host(), &sockets.flags(&ports));
    let line = format!(
        "sink --nic virtio:{} --ip 10.78.0.2/24 --mac 52:54:00:00:00:02 --listen 7000 --hash --json \
         --interval 0s",
        sockets.path(0)
    );
    let sink = spawn(lab.host(), &line);
    let bytes = pattern(4_000_000);
    let stream = connect(lab.peer(), "10.78.0.2:7000");
    send_all(&stream, &bytes);
    received(sink, &bytes);
    let totals = totals(rxo);
    assert_eq!(totals["guests"][1]["frames"], 0, "{totals}");
}
