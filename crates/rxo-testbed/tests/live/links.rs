//! Tests that interfaces are created as requested, and that errors name the object and the value.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rxo_testbed::{
    Interface, InterfaceCounters, KernelGro, Lab, LabError, LabOptions, Namespace, Offload,
    RateLimit, create_veth,
};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("a_veth_pair_is_configured_as_asked", a_veth_pair_is_configured_as_asked),
    ("a_wire_carries_the_first_packet", a_wire_carries_the_first_packet),
    ("offloads_are_switched", offloads_are_switched),
    ("hosts_talk_across_a_bridge", hosts_talk_across_a_bridge),
    ("hosts_talk_by_a_route_and_a_fixed_neighbour", hosts_talk_by_a_route_and_a_fixed_neighbour),
    ("a_vlan_carries_or_is_refused_clearly", a_vlan_carries_or_is_refused_clearly),
    ("settings_belong_to_their_namespace", settings_belong_to_their_namespace),
    ("threads_inside_see_only_their_network", threads_inside_see_only_their_network),
    ("refusals_are_one_line_with_the_name", refusals_are_one_line_with_the_name),
    ("the_wire_of_a_lab_through_rxo_answers_nobody", the_wire_of_a_lab_through_rxo_answers_nobody),
    ("kernel_gro_makes_fewer_deliveries", kernel_gro_makes_fewer_deliveries),
    ("an_interface_receives_in_a_thread_of_its_own", an_interface_receives_in_a_thread),
];

fn an_interface_receives_in_a_thread() {
    let [one, other] = ["one", "other"].map(|label| Namespace::new(label).unwrap());
    // This name is unique; the kernel gives it to its thread as well.
    let name = format!("t{}", std::process::id());
    let ends = pair(&one, &other, &name);
    let addresses = [address("10.4.0.1"), address("10.4.0.2")];
    ends.iter().zip(addresses).for_each(|(end, at)| end.add_address(at, 24).unwrap());
    assert_eq!(count_threads(&name), 0);
    assert!(ends[0].receive_in_thread().unwrap().is_some());
    assert_eq!(count_threads(&name), 1);
    talk(&one, &other, addresses[1]).unwrap();
    assert!(!Path::new(&format!("/sys/class/net/{name}")).exists(), "seen from outside");
}

/// Returns the number of the kernel's threads for an interface.
fn count_threads(interface: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let names = processes.filter_map(|it| fs::read_to_string(it.path().join("comm")).ok());
    names.filter(|name| name.starts_with(&format!("napi/{interface}"))).count()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Creates both ends of a new pair, up and with addresses.
fn pair<'n>(one: &'n Namespace, other: &'n Namespace, name: &str) -> [Interface<'n>; 2] {
    let ends = [one.interface(name), other.interface(name)];
    create_veth(&ends[0], &ends[1]).unwrap();
    ends.iter().for_each(|end| end.up().unwrap());
    ends
}

/// Sends a byte from `from` to `to` and back, over TCP.
fn talk(from: &Namespace, to: &Namespace, target: IpAddr) -> std::io::Result<()> {
    talk_within(Duration::from_secs(60), from, to, target)
}

/// Returns `true` if there is no answer within three seconds, in which a connected host would answer.
fn is_silent(from: &Namespace, to: &Namespace, target: IpAddr) -> bool {
    talk_within(Duration::from_secs(3), from, to, target).is_err()
}

fn talk_within(
    timeout: Duration,
    from: &Namespace,
    to: &Namespace,
    target: IpAddr,
) -> std::io::Result<()> {
    let listener = to.run(|| TcpListener::bind((target, 0))).unwrap()?;
    let target = listener.local_addr()?;
    let mut client = from.run(|| TcpStream::connect_timeout(&target, timeout)).unwrap()?;
    client.set_read_timeout(Some(timeout))?;
    let mut server = listener.accept()?.0;
    client.write_all(b"?")?;
    server.read_exact(&mut [0])?;
    server.write_all(b"!")?;
    client.read_exact(&mut [0])
}

fn a_veth_pair_is_configured_as_asked() {
    let (left, right) = (Namespace::new("left").unwrap(), Namespace::new("right").unwrap());
    let [near, far] = pair(&left, &right, "v0");
    let mac = [2, 0, 0, 0, 0, 7];
    near.set_mac(mac).unwrap();
    near.set_mtu(9000).unwrap();
    far.set_mtu(9000).unwrap();
    near.add_address(address("10.1.0.1"), 24).unwrap();
    far.add_address(address("10.1.0.2"), 24).unwrap();
    near.add_address(address("fd01::1"), 64).unwrap();
    far.add_address(address("fd01::2"), 64).unwrap();
    assert_eq!(near.mac().unwrap(), mac);
    assert_ne!(far.mac().unwrap(), mac);
    talk(&left, &right, address("10.1.0.2")).unwrap();
    talk(&right, &left, address("fd01::1")).unwrap();
    assert_ne!(far.counters().unwrap(), InterfaceCounters::default());
    near.delete().unwrap();
    assert!(!near.exists() && !far.exists());
}

/// The first packet crosses from the end that was up first, as soon as it is sent, and without a repetition.
fn a_wire_carries_the_first_packet() {
    let (left, right) = (Namespace::new("left").unwrap(), Namespace::new("right").unwrap());
    for number in 0..50 {
        let [near, far] = [&left, &right].map(|host| host.interface(&format!("v{number}")));
        create_veth(&near, &far).unwrap();
        let [from, to] = [1, 2].map(|host| address(&format!("10.5.{number}.{host}")));
        near.add_address(from, 24).unwrap();
        far.add_address(to, 24).unwrap();
        near.up().unwrap();
        near.add_neighbour(to, far.mac().unwrap()).unwrap();
        let receiver = right.run(|| UdpSocket::bind((to, 0)).unwrap()).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let sender = left.run(|| UdpSocket::bind((from, 0)).unwrap()).unwrap();
        far.up().unwrap();
        near.await_wire().unwrap();
        sender.send_to(b"!", receiver.local_addr().unwrap()).unwrap();
        assert_eq!(receiver.recv(&mut [0]).unwrap(), 1, "wire {number}");
    }
}

fn offloads_are_switched() {
    let (left, right) = (Namespace::new("left").unwrap(), Namespace::new("right").unwrap());
    let [near, _] = pair(&left, &right, "v0");
    for offload in [
        Offload::TransmitSegmentation,
        Offload::GenericSegmentation,
        Offload::GenericReceive,
        Offload::TransmitChecksum,
        Offload::UdpForwarding,
    ] {
        for on in [true, false] {
            near.set_offload(offload, on).unwrap();
            assert_eq!(near.offload(offload).unwrap(), on, "{offload:?}");
        }
    }
}

fn hosts_talk_across_a_bridge() {
    let switch = Namespace::new("switch").unwrap();
    let (left, right) = (Namespace::new("left").unwrap(), Namespace::new("right").unwrap());
    let bridge = switch.interface("br0");
    bridge.create_bridge().unwrap();
    bridge.up().unwrap();
    for (host, port, own) in [(&left, "p1", "10.2.0.1"), (&right, "p2", "10.2.0.2")] {
        let [end, port] = pair(host, &switch, port);
        port.join_bridge(&bridge).unwrap();
        end.add_address(address(own), 24).unwrap();
    }
    talk(&left, &right, address("10.2.0.2")).unwrap();
}

fn hosts_talk_by_a_route_and_a_fixed_neighbour() {
    let (left, right) = (Namespace::new("left").unwrap(), Namespace::new("right").unwrap());
    let [near, far] = pair(&left, &right, "v0");
    // ARP is off at both ends, so only fixed neighbours can work.
    near.set_arp(false).unwrap();
    far.set_arp(false).unwrap();
    near.add_address(address("10.3.0.1"), 24).unwrap();
    far.add_address(address("10.3.0.2"), 24).unwrap();
    right.interface("lo").add_address(address("10.99.0.1"), 32).unwrap();
    near.add_neighbour(address("10.3.0.2"), far.mac().unwrap()).unwrap();
    far.add_neighbour(address("10.3.0.1"), near.mac().unwrap()).unwrap();
    assert!(is_silent(&left, &right, address("10.99.0.1")), "there is no route yet");
    near.add_route((address("10.99.0.0"), 16), Some(address("10.3.0.2"))).unwrap();
    talk(&left, &right, address("10.99.0.1")).unwrap();
}

fn a_vlan_carries_or_is_refused_clearly() {
    let (left, right) = (Namespace::new("left").unwrap(), Namespace::new("right").unwrap());
    let ends = pair(&left, &right, "v0");
    for (end, own) in ends.iter().zip(["10.4.0.1", "10.4.0.2"]) {
        let vlan = end.namespace().interface("v0.5");
        if let Err(error) = vlan.create_vlan(end, 5) {
            let text = error.to_string();
            assert!(text.starts_with("cannot make the interface v0.5 in namespace"), "{text}");
            let LabError::System { source, .. } = error else { panic!("{text}") };
            assert_eq!(source.kind(), ErrorKind::Unsupported, "only for want of 802.1Q: {text}");
            eprintln!("not tested: this kernel has no VLAN interfaces");
            return;
        }
        vlan.up().unwrap();
        vlan.add_address(address(own), 24).unwrap();
    }
    talk(&left, &right, address("10.4.0.2")).unwrap();
}

fn settings_belong_to_their_namespace() {
    let (left, right) = (Namespace::new("left").unwrap(), Namespace::new("right").unwrap());
    left.set_sysctl("net.ipv4.tcp_sack", "0").unwrap();
    assert_eq!(left.sysctl("net.ipv4.tcp_sack").unwrap(), "0");
    assert_eq!(right.sysctl("net.ipv4.tcp_sack").unwrap(), "1");
    let error = left.set_sysctl("net.ipv4.no_such_thing", "1").unwrap_err().to_string();
    assert!(error.contains("net.ipv4.no_such_thing") && error.contains("\"left\""), "{error}");
}

fn threads_inside_see_only_their_network() {
    let (left, right) = (Namespace::new("left").unwrap(), Namespace::new("right").unwrap());
    create_veth(&left.interface("v0"), &right.interface("w0")).unwrap();
    let names = || {
        let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        ["v0:", "w0:"].map(|name| table.contains(name))
    };
    let thread = left.spawn("looks", names).unwrap();
    assert_eq!(thread.join().unwrap().unwrap(), [true, false]);
    assert_eq!(right.run(names).unwrap(), [false, true]);
    assert_eq!(names(), [false, false]);
}

fn refusals_are_one_line_with_the_name() {
    let left = Namespace::new("left").unwrap();
    let missing = left.interface("no0");
    let lo = left.interface("lo");
    let (veth, taken) = (left.interface("v0"), left.interface("v1"));
    create_veth(&veth, &taken).unwrap();
    let refusals = [
        (missing.up().unwrap_err(), "no0"),
        (missing.delete().unwrap_err(), "no0"),
        (missing.counters().unwrap_err(), "no0"),
        (missing.set_offload(Offload::GenericReceive, true).unwrap_err(), "no0"),
        (create_veth(&veth, &left.interface("v2")).unwrap_err(), "v0"),
        (left.interface("a-name-too-long-for-linux").create_bridge().unwrap_err(), "a-name"),
        (lo.add_address(address("127.0.0.1"), 8).unwrap_err(), "127.0.0.1/8"),
        (lo.limit_rate(RateLimit::new(0)).unwrap_err(), "0 bytes"),
    ];
    for (error, name) in refusals {
        let text = error.to_string();
        assert!(text.contains(name) && !text.contains('\n'), "{text}");
        assert!(matches!(error, LabError::System { .. } | LabError::Usage(_)), "{text}");
    }
}

fn the_wire_of_a_lab_through_rxo_answers_nobody() {
    let lab = Lab::through().unwrap();
    // The stand-in for the TAP has the host's address but no path to the peer.
    let stand_in = lab.host().interface("stand0");
    stand_in.create_bridge().unwrap();
    lab.attach_host("stand0").unwrap();
    thread::scope(|scope| {
        for address in [lab.host_address(), Lab::HOST_ADDRESSES.1.into()] {
            let lab = &lab;
            scope.spawn(move || assert!(is_silent(lab.peer(), lab.host(), address), "{address}"));
        }
    });
    let wire = lab.host().interface(Lab::WIRE_INTERFACE).counters().unwrap();
    assert!(wire.received_frames > 0, "what the peer asked did arrive");
    assert_eq!(wire.sent_frames, 0, "and nobody answered");
}

fn kernel_gro_makes_fewer_deliveries() {
    use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
    let deliveries = |gro| {
        let options =
            LabOptions { partial_checksums: gro == KernelGro::On, ..LabOptions::default() };
        let lab = Lab::direct_with(gro, options).unwrap();
        let bytes_per_connection = Some(14_480_000);
        let config = BulkConfig { bytes_per_connection, ..BulkConfig::default() };
        let transfer = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config);
        assert!(transfer.unwrap().wait().unwrap().is_intact());
        lab.host().stack_counters().unwrap().deliveries
    };
    assert!(deliveries(KernelGro::Off) >= 10_000);
    let coalesced = deliveries(KernelGro::On);
    assert!(coalesced < 5_000, "{coalesced}");
}
