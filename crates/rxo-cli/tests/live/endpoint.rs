//! `rxo sink` and `rxo source` with plain Linux sockets at the other end.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::{Child, Output};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rxo_testbed::{DropIncoming, Lab, Namespace};
use serde_json::Value;

use crate::Test;
use crate::process::{run, signal, spawn, wait_until};

pub(crate) const TESTS: &[Test] = &[
    ("a_source_says_when_the_peer_did_not_get_all", source_is_cut_off),
    ("a_sink_receives_what_linux_sends", sink_receives),
    ("a_source_sends_what_linux_receives", source_sends),
    ("hundreds_of_connections_take_no_thread_and_no_descriptor_each", sink_has_many),
    ("hundreds_of_connections_ask_and_each_gets_its_answers", source_has_many),
    ("a_source_sends_for_a_time", source_for_a_time),
    ("a_source_stays_for_a_peer_that_missed_the_last_ack", source_stays),
    ("requests_are_answered_either_way", requests),
    ("a_signal_ends_a_sink_with_its_totals", a_signal),
    ("killed_half_way_a_sink_leaves_nothing", killed_half_way),
    ("an_address_that_the_system_has_is_refused", taken),
    ("in_a_namespace_without_addresses_none_is_refused", lone),
];

pub(crate) const HOST: &str = "--nic packet:wire0 --ip 10.77.0.2/24";
pub(crate) const AT_HOST: &str = "10.77.0.2:7000";
pub(crate) const AT_PEER: &str = "10.77.0.1:7000";

pub(crate) fn pattern(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Connects from the peer as soon as the host listens.
pub(crate) fn connect(namespace: &Namespace, to: &str) -> TcpStream {
    let begun = Instant::now();
    loop {
        match namespace.run(|| TcpStream::connect(to)).unwrap() {
            Ok(stream) => return stream,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(60), "{error}"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a server in the peer's namespace that handles its first `clients` connections with `serve`.
pub(crate) fn serve<T: Send + 'static>(
    lab: &Lab,
    clients: usize,
    serve: impl Fn(TcpStream) -> T + Send + 'static + Copy,
) -> JoinHandle<Vec<T>> {
    let listener =
        lab.peer().run(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 7000)).unwrap()).unwrap();
    thread::spawn(move || {
        let threads: Vec<_> = (0..clients)
            .map(|_| listener.accept().unwrap().0)
            .map(|stream| thread::spawn(move || serve(stream)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

pub(crate) fn read_all(mut stream: &TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all
}

/// Writes `bytes` and ends this direction. Waits until the other side has received everything and ends its
/// own direction.
pub(crate) fn send_all(mut stream: &TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
    finish(stream);
}

/// Ends this direction, and waits until the other side, which sends nothing, ends its own.
pub(crate) fn finish(stream: &TcpStream) {
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(stream), b"");
}

/// Runs `rxo` with `line` on a TAP and on a TUN, over IPv4 and over IPv6, and passes each process to `check`, with the
/// peer's namespace and the address at which the process listens.
pub(crate) fn on_each_device(line: &str, check: impl Fn(Child, &Namespace, &str)) {
    let namespace = Namespace::new("peer").unwrap();
    let versions = if namespace.has_ipv6() { 2 } else { 1 };
    let rows = [
        ("10.9.0.1", 24, "10.9.0.2", "10.9.0.2:7000"),
        ("fd09::1", 64, "fd09::2", "[fd09::2]:7000"),
    ];
    for (peer, prefix, host, listening) in &rows[..versions] {
        for kind in ["tap", "tun"] {
            let device = format!("--nic {kind}:rxo0 --ip {host}/{prefix} --listen 7000");
            let child = spawn(&namespace, &format!("{line} {device}"));
            let interface = namespace.interface("rxo0");
            wait_until("the device is there", || interface.exists());
            interface.add_address(peer.parse().unwrap(), *prefix).unwrap();
            interface.up().unwrap();
            check(child, &namespace, listening);
            wait_until("the device is gone", || !interface.exists());
        }
    }
}

pub(crate) fn json(output: &Output) -> Vec<Value> {
    let said = String::from_utf8_lossy(&output.stderr);
    // On a busy machine the peer's last ACK or its FIN may be late.
    let is_late = |line: &&str| LATE.iter().any(|words| line.contains(words));
    let said: String = said.lines().filter(|line| !is_late(line)).collect();
    assert_eq!((output.status.code(), said.as_str()), (Some(0), ""));
    lines(output)
}

/// Parts of the lines that report a peer that is late at the end.
const LATE: [&str; 2] = ["staying a moment", "waiting for peers to close"];

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks for exit code 3 and one line on standard error, which is returned.
pub(crate) fn ends_incomplete(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(3), 1), "{said}");
    said
}

fn source_is_cut_off() {
    let lab = Lab::through().unwrap();
    let server = serve(&lab, 1, |mut stream| stream.read_exact(&mut [0; 13_033]).unwrap());
    let output = run(lab.host(), &format!("source {HOST} {AT_PEER} --bytes 100M --interval 0s"));
    let said = ends_incomplete(&output);
    server.join().unwrap();
    assert!(said.contains(AT_PEER) && said.contains("reset"), "{said}");
}

fn sink_receives() {
    let lab = Lab::through().unwrap();
    let line = format!("sink {HOST} --listen 7000 --connections 3 --hash --json --interval 100ms");
    let sink = spawn(lab.host(), &line);
    let sizes = [20_000_000, 10_000_000, 1];
    let senders: Vec<_> = sizes
        .map(|bytes| (connect(lab.peer(), AT_HOST), bytes))
        .into_iter()
        .map(|(stream, bytes)| {
            thread::spawn(move || {
                send_all(&stream, &pattern(bytes));
            })
        })
        .collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    let mut lines = json(&sink.wait_with_output().unwrap());
    let totals = lines.pop().unwrap();
    assert!(lines.iter().all(|line| line["kind"] == "interval"), "{lines:?}");
    assert_eq!(
        (totals["kind"].as_str(), totals["bytes"].as_u64()),
        (Some("totals"), Some(30_000_001))
    );
    assert!(
        totals["gbit_per_s"].as_f64().unwrap() > 0.0 && totals["cpu_s"].as_f64().unwrap() > 0.0
    );
    let frames = &totals["frames"];
    let count = |name: &str| frames[name].as_u64().unwrap();
    assert!(count("received") > 10_000 && count("deliveries") < count("received"), "{frames}");
    assert!(count("sent") > 100, "{frames}");
    let mut seen: Vec<_> = totals["ends"].as_array().unwrap().iter().map(hash_of).collect();
    let mut sent: Vec<_> =
        sizes.iter().map(|&bytes| (u64::from(bytes), hash(&pattern(bytes)))).collect();
    seen.sort();
    sent.sort();
    assert_eq!(seen, sent);
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(bytes))
}

pub(crate) fn hash_of(end: &Value) -> (u64, String) {
    (end["bytes"].as_u64().unwrap(), end["crc32"].as_str().unwrap().to_owned())
}

fn source_sends() {
    let lab = Lab::through().unwrap();
    let server = serve(&lab, 4, |stream| {
        let all = read_all(&stream);
        (all.len() as u64, hash(&all))
    });
    let line = format!("source {HOST} {AT_PEER} --bytes 5M --connections 4 --hash --json");
    let totals = json(&run(lab.host(), &line)).pop().unwrap();
    assert_eq!(totals["bytes"], 20_000_000);
    let sent: Vec<_> = totals["ends"].as_array().unwrap().iter().map(hash_of).collect();
    assert_eq!(server.join().unwrap(), sent);
}

/// One connection is opened, then all others; the sink's numbers of threads and descriptors stay the same.
fn sink_has_many() {
    let lab = Lab::through().unwrap();
    let line =
        format!("sink {HOST} --listen 7000 --connections {MANY} --hash --json --interval 0s");
    let sink = spawn(lab.host(), &line);
    let has = |what: &str| fs::read_dir(format!("/proc/{}/{what}", sink.id())).unwrap().count();
    let first = connect(lab.peer(), AT_HOST);
    let before = ["task", "fd"].map(has);
    let others = (1..MANY).map(|_| connect(lab.peer(), AT_HOST));
    let streams: Vec<_> = [first].into_iter().chain(others).collect();
    for mut stream in &streams {
        stream.write_all(&pattern(10_000)).unwrap();
    }
    assert_eq!(["task", "fd"].map(has), before);
    for stream in streams {
        finish(&stream);
    }
    let totals = json(&sink.wait_with_output().unwrap()).pop().unwrap();
    let ends = totals["ends"].as_array().unwrap();
    assert_eq!((totals["connections"].as_u64(), ends.len()), (Some(MANY as u64), MANY));
    let expected = (10_000, hash(&pattern(10_000)));
    assert!(ends.iter().all(|end| hash_of(end) == expected), "{ends:?}");
}

/// Each exchange has one byte, so no answer arrives in two pieces.
fn source_has_many() {
    let lab = Lab::through().unwrap();
    let server = serve(&lab, MANY, |mut stream| {
        let (mut buffer, mut answered) = ([0; 4_096], 0);
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => return answered,
                read => stream.write_all(&buffer[..read]).unwrap(),
            }
            answered += 1;
        }
    });
    let line = format!("source {HOST} {AT_PEER} --connections {MANY} --rr 1 --bytes 20 --json");
    let totals = json(&run(lab.host(), &line)).pop().unwrap();
    assert_eq!(totals["exchanges"].as_u64(), Some(20 * MANY as u64), "{totals}");
    assert!(server.join().unwrap().into_iter().all(|answered| answered == 20));
}

/// A number of connections that is less than the number of descriptors that a test may have.
const MANY: usize = 300;

fn source_for_a_time() {
    // On a busy machine a short time may have few intervals and no bytes.
    for time in ["1s", "5s", "20s"] {
        let lab = Lab::through().unwrap();
        let server = serve(&lab, 1, |stream| read_all(&stream).len() as u64);
        let line = format!("source {HOST} {AT_PEER} --time {time} --interval 100ms --acks stretch");
        let output = run(lab.host(), &line);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("totals of 1 connections"), "{text}");
        let received = server.join().unwrap().remove(0);
        let intervals = text.lines().filter(|line| line.contains("Gbit/s")).count();
        if received > 0 && intervals >= 3 {
            return;
        }
    }
    panic!("no bytes or no intervals in 20 s");
}

/// A source stays for a moment at the end: the peer receives nothing for a while, so it repeats its FIN.
fn source_stays() {
    let lab = Lab::through().unwrap();
    let server = serve(&lab, 1, |stream| {
        let all = read_all(&stream).len();
        let dropping = DropIncoming::new(&stream).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        thread::sleep(Duration::from_millis(100));
        drop(dropping);
        (all, stream)
    });
    let output = run(lab.host(), &format!("source {HOST} {AT_PEER} --bytes 100k --json"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let (bytes, stream) = server.join().unwrap().remove(0);
    assert_eq!(bytes, 100_000);
    assert!(stream.take_error().unwrap().is_none());
    let open = lab.peer().run(|| fs::read_to_string("/proc/thread-self/net/tcp")).unwrap().unwrap();
    let is_open = |line: &&str| line.contains(":1B58 ");
    assert_eq!(open.lines().find(is_open), None, "the peer waits in vain");
    assert_eq!((output.status.code(), said.lines().count()), (Some(0), 1), "{said}");
    assert!(said.contains("missed the last ACK"), "{said}");
}

/// Linux sends requests and rxo answers; then the reverse.
fn requests() {
    let lab = Lab::through().unwrap();
    let sink = spawn(lab.host(), &format!("sink {HOST} --listen 7000 --rr --json --interval 0s"));
    let stream = connect(lab.peer(), AT_HOST);
    stream.set_nodelay(true).unwrap();
    let mut answer = [0; 10];
    for number in 0..200_u8 {
        (&stream).write_all(&[number; 10]).unwrap();
        (&stream).read_exact(&mut answer).unwrap();
        assert_eq!(answer, [number; 10]);
    }
    stream.shutdown(Shutdown::Write).unwrap();
    let totals = json(&sink.wait_with_output().unwrap()).pop().unwrap();
    assert_eq!((totals["exchanges"].as_u64(), totals["bytes"].as_u64()), (Some(200), Some(2_000)));

    // On a busy machine a short time may have hardly any exchanges.
    let mut totals = ["500ms", "10s", "30s"].into_iter().map(asked);
    let totals = totals.find(|totals| totals["exchanges"].as_u64() > Some(0));
    let totals = totals.expect("exchanges in 30 s");
    let exchanges = totals["exchanges"].as_u64().unwrap();
    assert_eq!(totals["bytes"].as_u64(), Some(exchanges * 100), "{totals}");
    let times = &totals["round_trips"];
    let us = |name: &str| times[name].as_f64().unwrap();
    assert!(us("p50_us") > 0.0 && us("p50_us") <= us("p99_us"), "{times}");
}

/// Returns the totals of a source that sends requests to Linux for `time`.
fn asked(time: &str) -> Value {
    let lab = Lab::through().unwrap();
    let server = serve(&lab, 2, |mut stream| {
        let mut buffer = [0; 4_096];
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => return,
                read => stream.write_all(&buffer[..read]).unwrap(),
            }
        }
    });
    let line = format!("source {HOST} {AT_PEER} --rr 100 --connections 2 --time {time} --json");
    let totals = json(&run(lab.host(), &line)).pop().unwrap();
    server.join().unwrap();
    totals
}

fn a_signal() {
    let lab = Lab::through().unwrap();
    let sink = spawn(lab.host(), &format!("sink {HOST} --listen 7000 --json --interval 0s"));
    let stream = connect(lab.peer(), AT_HOST);
    (&stream).write_all(&pattern(1_000_000)).unwrap();
    signal("INT", sink.id());
    let output = sink.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(3), 1), "{said}");
    assert!(said.contains("interrupted"), "{said}");
    assert_eq!(lines(&output).pop().unwrap()["kind"], "totals");
    // The peer receives the reset.
    assert!((&stream).read(&mut [0]).is_err());
}

/// The TAP is removed with the process, and the next process starts like the first.
fn killed_half_way() {
    let namespace = Namespace::new("peer").unwrap();
    let line = "sink --nic tap:rxo0 --ip 10.9.0.2/24 --listen 7000 --json";
    for way in ["KILL", "TERM"] {
        let mut sink = spawn(&namespace, line);
        let interface = namespace.interface("rxo0");
        wait_until("the TAP is there", || interface.exists());
        interface.add_address("10.9.0.1".parse().unwrap(), 24).unwrap();
        interface.up().unwrap();
        let stream = connect(&namespace, "10.9.0.2:7000");
        (&stream).write_all(&pattern(2_000_000)).unwrap();
        signal(way, sink.id());
        let status = sink.wait().unwrap();
        assert_eq!(status.code(), if way == "KILL" { None } else { Some(3) });
        wait_until("the TAP is gone", || !interface.exists());
    }
}

fn taken() {
    let lab = Lab::through().unwrap();
    let address = "10.77.0.2".parse().unwrap();
    lab.host().interface("wire0").add_address(address, 24).unwrap();
    for line in ["cat", "sink", "source"] {
        let output = run(lab.host(), &format!("{line} {HOST} {AT_PEER}"));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains("10.77.0.2") && said.contains("the system has it"), "{said}");
    }
}

/// In this namespace a socket can be bound to any address, so a successful bind proves nothing.
fn lone() {
    let (lone, other) = (Namespace::new("lone").unwrap(), Namespace::new("other").unwrap());
    lone.interface("lo").down().unwrap();
    let wire = lone.interface("wire0");
    rxo_testbed::create_veth(&wire, &other.interface("peer0")).unwrap();
    wire.up().unwrap();
    other.interface("peer0").up().unwrap();
    let output = run(&lone, &format!("cat {HOST} {AT_PEER}"));
    let said = String::from_utf8(output.stderr).unwrap();
    // There is no peer to connect to, but the address was accepted.
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(AT_PEER), "{said}");
}
