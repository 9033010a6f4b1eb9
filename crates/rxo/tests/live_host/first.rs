//! Tests of one stream in each direction, on each kind of device.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use rxo::driver::{Tap, TapKind};
use rxo::live::host;
use rxo::live::{Device, DeviceOptions};
use rxo_testbed::{Lab, LabOptions, Namespace};

use crate::Test;
use crate::network::Network;

pub(crate) const TESTS: &[Test] = &[
    ("a_packet_interface_carries_streams_both_ways", packet),
    ("the_system_keeps_its_own_traffic_on_the_interface", beside_the_system),
    ("a_tap_carries_streams_both_ways", || tap(TapKind::Tap)),
    ("a_tun_carries_streams_both_ways", || tap(TapKind::Tun)),
];

const BYTES: usize = 8_000_000;

fn pattern() -> Vec<u8> {
    (0..BYTES as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Sends everything back until the other side has ended its stream.
fn echo(mut stream: impl Read + Write, done: impl FnOnce()) {
    let mut buffer = vec![0; 50_000];
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => return done(),
            read => stream.write_all(&buffer[..read]).unwrap(),
        }
    }
}

/// Writes on one thread and reads on another; the data read must be the data written.
fn send_and_compare<S: Read + Write + Send>(mut reader: S, mut writer: S, done: fn(&S)) {
    let data = pattern();
    let back = thread::scope(|scope| {
        scope.spawn(|| {
            writer.write_all(&data).unwrap();
            done(&writer);
        });
        let mut back = Vec::with_capacity(BYTES);
        reader.read_to_end(&mut back).unwrap();
        back
    });
    assert!(back == data, "{} of {} bytes", back.len(), data.len());
}

/// Connects the host to a Linux server that echoes, and a Linux client to an echo server of the host.
fn both_ways(namespace: &Namespace, handle: &rxo::host::Handle, peer: &str, host: &str) {
    let server = namespace.run(|| TcpListener::bind(peer).unwrap()).unwrap();
    let listener = handle.listen(host.parse().unwrap(), 16).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (stream, _) = server.accept().unwrap();
            echo(&stream, || stream.shutdown(Shutdown::Write).unwrap());
        });
        let stream = handle.connect(peer.parse().unwrap()).unwrap();
        let writer = stream.try_clone().unwrap();
        send_and_compare(stream, writer, |stream| stream.shutdown(Shutdown::Write).unwrap());
    });
    thread::scope(|scope| {
        scope.spawn(|| {
            let (stream, _) = listener.accept().unwrap();
            echo(&stream, || stream.shutdown(Shutdown::Write).unwrap());
        });
        let stream = namespace.run(|| TcpStream::connect(host).unwrap()).unwrap();
        let writer = stream.try_clone().unwrap();
        send_and_compare(stream, writer, |stream| stream.shutdown(Shutdown::Write).unwrap());
    });
}

fn packet() {
    let network = Network::new(LabOptions::default(), |_| {});
    let (peer, host) = (network.peer(7000).to_string(), network.host(7001).to_string());
    both_ways(network.lab.peer(), &network.handle(), &peer, &host);
    if network.lab.peer().has_ipv6() {
        let (peer, host) = Network::v6();
        let (peer, host) = (format!("[{peer}]:7000"), format!("[{host}]:7001"));
        both_ways(network.lab.peer(), &network.handle(), &peer, &host);
    }
    // The kernel has hardly seen any of the host's frames.
    let seen = network.lab.host().stack_counters().unwrap().deliveries;
    let counters = network.stop().counters;
    assert!(counters.engine.aggregates > 0, "{counters:?}");
    assert!(seen < counters.source.frames / 100, "the kernel has seen {seen} packets");
}

/// The system gets an address on the interface while the host runs, for example from DHCP.
fn beside_the_system() {
    let network = Network::new(LabOptions::default(), |_| {});
    let system = network.lab.host();
    let interface = system.interface(Lab::WIRE_INTERFACE);
    interface.set_arp(true).unwrap();
    interface.add_address("10.77.0.9".parse().unwrap(), 24).unwrap();
    let listener = system.run(|| TcpListener::bind("10.77.0.9:7002").unwrap()).unwrap();
    let connect = || {
        let address = "10.77.0.9:7002".parse().unwrap();
        TcpStream::connect_timeout(&address, Duration::from_secs(30)).unwrap()
    };
    let mut client = network.lab.peer().run(connect).unwrap();
    client.write_all(b"for the system").unwrap();
    drop(client);
    let mut text = String::new();
    listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
    assert_eq!(text, "for the system");
    network.stop();
}

fn tap(kind: TapKind) {
    let namespace = Namespace::new("peer").unwrap();
    let name = "rxo0";
    let tap = namespace.run(|| Tap::open(name, kind).unwrap()).unwrap();
    let interface = namespace.interface(name);
    interface.add_address("10.9.0.1".parse().unwrap(), 24).unwrap();
    interface.up().unwrap();
    let config = host::config(vec!["10.9.0.2/24".parse().unwrap()]);
    let start = || {
        let open = move || Device::of_tap(&tap, DeviceOptions::default());
        host::start_with(name.to_owned(), open, config).unwrap()
    };
    let running = namespace.run(start).unwrap();
    both_ways(&namespace, &running.handle(), "10.9.0.1:7000", "10.9.0.2:7001");
    running.stop().result.unwrap();
}
