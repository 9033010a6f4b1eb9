//! The kernel's own stack is isolated from the nic: each packet of the peer arrives once.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use rxo_testbed::{Lab, LabOptions, Namespace, Offload, create_veth};

use crate::Test;
use crate::at_once::at_once;
use crate::process::{Rxo, run, wait_until};
use crate::setup::{self, SetUp};
use crate::traffic::totals;

pub(crate) const TESTS: &[Test] = &[
    ("each_datagram_arrives_once_however_routes_are_checked", each_datagram_arrives_once),
    ("without_isolation_the_host_gets_datagrams_twice", without_isolation),
    ("the_kernel_sends_nothing_from_the_nic_by_itself", the_kernel_is_silent),
    ("a_second_rxo_on_a_nic_is_refused_and_changes_nothing", a_second_rxo),
    ("a_nic_renamed_meanwhile_gets_back_what_was_its_own", a_renamed_nic),
];

pub(crate) const DATAGRAMS: u32 = 300;
/// A number of datagrams so small that both copies of each fit into a socket's buffer: on a busy machine all
/// of rxo's copies may arrive at once.
const FEW: u32 = 40;

/// Sends datagrams from the peer, each once. Returns the number of those that arrived: without duplicates,
/// and in total.
pub(crate) fn received(lab: &Lab, to: IpAddr) -> (usize, usize) {
    received_of(DATAGRAMS, lab, to)
}

/// Like [`received`], for `count` datagrams.
fn received_of(count: u32, lab: &Lab, to: IpAddr) -> (usize, usize) {
    let bind = |namespace: &Namespace, ip: IpAddr| {
        namespace.run(|| UdpSocket::bind(SocketAddr::new(ip, 0)).unwrap()).unwrap()
    };
    let receiver = bind(lab.host(), to);
    let any: IpAddr = if to.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() };
    let sender = bind(lab.peer(), any);
    let port = receiver.local_addr().unwrap().port();
    let (mut numbers, mut all) = (std::collections::BTreeSet::new(), 0);
    let take = |patience| {
        receiver.set_read_timeout(Some(patience)).unwrap();
        let mut number = [0; 4];
        receiver.recv(&mut number).ok().map(|_| u32::from_ne_bytes(number))
    };
    for number in 0..count {
        sender.send_to(&number.to_ne_bytes(), SocketAddr::new(to, port)).unwrap();
        // Waits for this datagram, not for any: if each arrived twice, second copies would fill the socket's
        // buffer, and the kernel would drop later ones.
        while !numbers.contains(&number) {
            numbers.insert(take(Duration::from_secs(60)).expect("a datagram is lost"));
            all += 1;
        }
    }
    while let Some(number) = take(Duration::from_millis(300)) {
        numbers.insert(number);
        all += 1;
    }
    (numbers.len(), all)
}

fn each_datagram_arrives_once() {
    let checks = ["0", "1", "2"];
    let rows = [SetUp::ByHand, SetUp::TakeOver].into_iter();
    at_once(rows.flat_map(|set_up| checks.map(|check| (set_up, check))), |(set_up, check)| {
        let lab = set_up.lab(LabOptions::default());
        lab.host().set_sysctl("net.ipv4.conf.all.rp_filter", check).unwrap();
        let (rxo, _) = Rxo::start(lab.host(), set_up.flags());
        set_up.attach(&lab);
        for to in [Lab::HOST_ADDRESSES.0.into(), Lab::HOST_ADDRESSES.1.into()] {
            let once = DATAGRAMS as usize;
            assert_eq!(received(&lab, to), (once, once), "{set_up:?} {check} {to}");
        }
        totals(rxo);
    });
}

/// Without isolation the duplicates appear, so the tests above can detect them.
fn without_isolation() {
    let (lab, rxo) = setup::start(SetUp::ByHand, LabOptions::default(), "--no-isolation");
    let (different, all) = received_of(FEW, &lab, Lab::HOST_ADDRESSES.0.into());
    assert_eq!(different, FEW as usize);
    assert!(all > different * 3 / 2, "{all} of {different}");
    totals(rxo);
}

fn the_kernel_is_silent() {
    let (lab, rxo) = setup::start(SetUp::TakeOver, LabOptions::default(), "");
    let switch = "net.ipv6.conf.eth1.disable_ipv6";
    assert_eq!(lab.host().sysctl("net.ipv6.conf.eth1-nic.disable_ipv6").unwrap(), "1");
    assert_eq!(lab.host().sysctl(switch).unwrap(), "0", "the TAP goes on");
    totals(rxo);
    assert_eq!(lab.host().sysctl(switch).unwrap(), "0");
}

fn a_second_rxo() {
    let lab = SetUp::ByHand.lab(LabOptions::default());
    let nic = lab.host().interface(Lab::NIC);
    nic.set_offload(Offload::GenericReceive, true).unwrap();
    let (rxo, _) = Rxo::start(lab.host(), SetUp::ByHand.flags());
    let output = run(lab.host(), "run --nic packet:eth1 --host tap:rxo1");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("packet:eth1 is in use by another rxo"), "{said}");
    assert!(!nic.offload(Offload::GenericReceive).unwrap(), "switched on under the first");
    assert!(!lab.host().interface("rxo1").exists());
    SetUp::ByHand.attach(&lab);
    let once = DATAGRAMS as usize;
    assert_eq!(received(&lab, Lab::HOST_ADDRESSES.0.into()), (once, once));
    totals(rxo);
    assert!(nic.offload(Offload::GenericReceive).unwrap());
}

/// A nic that takes the old name of a renamed one keeps its settings.
fn a_renamed_nic() {
    let lab = SetUp::ByHand.lab(LabOptions::default());
    let nic = lab.host().interface(Lab::NIC);
    nic.set_offload(Offload::GenericReceive, true).unwrap();
    let (rxo, _) = Rxo::start(lab.host(), SetUp::ByHand.flags());
    SetUp::ByHand.attach(&lab);
    nic.rename("old1").unwrap();
    let (old, other) = (lab.host().interface("old1"), lab.host().interface(Lab::NIC));
    create_veth(&other, &lab.host().interface("far0")).unwrap();
    other.set_offload(Offload::GenericReceive, false).unwrap();
    let to = Lab::HOST_ADDRESSES.0.into();
    // Repeated, because on a busy machine rxo's copies may arrive after the receiver stopped waiting.
    wait_until("the kernel is kept off the nic under its new name", || {
        (0..3).all(|_| received_of(FEW, &lab, to) == (FEW as usize, FEW as usize))
    });
    totals(rxo);
    assert!(old.offload(Offload::GenericReceive).unwrap());
    assert!(!other.offload(Offload::GenericReceive).unwrap());
}
