//! `rxo guest`: several guests behind one interface, each another rxo process with `virtio:PATH`.

use std::io::{Read, Write};
use std::net::{IpAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::{Lab, Namespace};
use serde_json::Value;

use crate::Test;
use crate::endpoint::{connect, hash, json, pattern, send_all};
use crate::process::{LONG, Rxo, run, signal, spawn, wait_until};

pub(crate) const TESTS: &[Test] = &[
    ("four_guests_receive_at_once", four),
    ("a_guest_sends_to_another", between),
    ("a_guest_leaves_and_returns_while_another_receives", returns),
    ("a_guest_that_is_stopped_delays_nobody", stopped),
    ("a_guest_with_an_address_that_is_not_its_own_reaches_nobody", guarded),
    ("isolated_guests_reach_the_peer_and_not_each_other", isolated),
    ("24_guests_start_under_a_low_limit_of_open_files", many),
    ("a_killed_switch_is_replaced_and_connections_go_on", killed),
    ("a_nic_that_is_unplugged_ends_the_run_or_is_waited_for", unplugged),
    ("a_switch_that_cannot_work_says_so_in_one_line", refused),
    ("a_dry_run_shows_each_guest_and_makes_no_socket", dry),
];

/// The sockets of a test, in a folder of their own, which is removed at the end.
pub(crate) struct Sockets(PathBuf);

impl Sockets {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("rxo-switch-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, guest: usize) -> String {
        self.0.join(format!("{guest}.sock")).display().to_string()
    }

    /// Returns the flags of `rxo guest` with these guests, each with the settings of its port.
    pub(crate) fn flags(&self, ports: &[&str]) -> String {
        let guests = ports.iter().enumerate();
        let guests = guests.map(|(n, port)| {
            let learns = if port.contains("mac=") { "" } else { ",learn=yes" };
            format!(" --vhost g{n}={}{port}{learns}", self.path(n))
        });
        format!("--nic packet:wire0{}", guests.collect::<String>())
    }

    /// Returns the flags of a guest's host. A restarted one has the same hardware address, which the peer
    /// knows.
    pub(crate) fn host(&self, guest: usize) -> String {
        let (path, ip) = (self.path(guest), address(guest));
        format!("--nic virtio:{path} --ip {ip}/24 --mac 52:54:00:00:00:{guest:02x}")
    }

    pub(crate) fn sink(&self, lab: &Lab, guest: usize) -> Child {
        let host = self.host(guest);
        spawn(lab.host(), &format!("sink {host} --listen 7000 --hash --json --interval 0s"))
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn address(guest: usize) -> IpAddr {
    [10, 77, 0, 2 + guest as u8].into()
}

/// Sends `bytes` to a guest that receives, and waits until the guest has received everything.
pub(crate) fn send(from: &Namespace, guest: usize, bytes: &[u8]) {
    let stream = connect(from, &format!("{}:7000", address(guest)));
    send_all(&stream, bytes);
}

/// Runs a source repeatedly until the guest that it sends to listens.
pub(crate) fn send_from(lab: &Lab, source: &str) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let output = run(lab.host(), source);
        if output.status.success() {
            return json(&output);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("cannot connect to") && begun.elapsed() < LONG, "{said}");
    }
}

/// Asserts that a sink received `bytes`, and nothing else.
pub(crate) fn received(sink: Child, bytes: &[u8]) {
    let totals = json(&sink.wait_with_output().unwrap()).pop().unwrap();
    let got = (totals["bytes"].as_u64(), totals["ends"][0]["crc32"].as_str());
    assert_eq!(got, (Some(bytes.len() as u64), Some(hash(bytes).as_str())));
}

/// Ends the run with SIGINT and returns its totals.
pub(crate) fn totals(rxo: Rxo) -> Value {
    rxo.signal("INT");
    let (code, mut lines, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    lines.pop().unwrap()
}

fn four() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("four"));
    let (rxo, configuration) = Rxo::guests(lab.host(), &sockets.flags(&[""; 4]));
    assert_eq!(configuration["guests"].as_array().unwrap().len(), 4);
    assert_eq!(configuration["settings"]["hold"], "auto:50us,8");
    let texts: Vec<_> = (0..4).map(|n| pattern(6_000_000 + n)).collect();
    let sinks: Vec<_> = (0..4).map(|guest| sockets.sink(&lab, guest)).collect();
    thread::scope(|scope| {
        for (guest, text) in texts.iter().enumerate() {
            let peer = lab.peer();
            scope.spawn(move || send(peer, guest, text));
        }
    });
    sinks.into_iter().zip(&texts).for_each(|(sink, text)| received(sink, text));
    let totals = totals(rxo);
    let switch = &totals["switch"];
    assert!(switch["forwarded"].as_u64().unwrap() > 4, "{switch}");
    assert!(switch["learned"].as_u64().unwrap() >= 5, "four guests and the peer: {switch}");
    for (n, guest) in totals["guests"].as_array().unwrap().iter().enumerate() {
        assert_eq!(guest["name"], format!("g{n}"));
        assert!(guest["bytes"].as_u64().unwrap() > 6_000_000, "{guest}");
        assert!(guest["deliveries"].as_u64() <= guest["frames"].as_u64(), "{guest}");
        assert!(!Path::new(&sockets.path(n)).exists(), "removed at a normal end");
    }
}

/// Frames between guests do not pass the nic.
fn between() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("between"));
    let file = sockets.0.join("all.pcapng");
    let flags = format!("{} --tap {}", sockets.flags(&["", ""]), file.display());
    let (rxo, _) = Rxo::guests(lab.host(), &flags);
    let sink = sockets.sink(&lab, 0);
    let (host, to) = (sockets.host(1), address(0));
    let source = format!("source {host} {to}:7000 --bytes 8000000 --hash --json --interval 0s");
    let sent = send_from(&lab, &source).pop().unwrap();
    let got = json(&sink.wait_with_output().unwrap()).pop().unwrap();
    assert_eq!(got["bytes"].as_u64(), Some(8_000_000));
    assert_eq!(got["ends"][0]["crc32"], sent["ends"][0]["crc32"]);
    assert!(got["ends"][0]["crc32"].is_string(), "{got}");
    let totals = totals(rxo);
    let bytes = totals["nic_out"]["bytes"].as_u64().unwrap();
    assert!(bytes < 1_000_000, "{bytes} bytes left by the nic");
    assert!(file.metadata().unwrap().len() > 8_000_000, "the capture has both guests");
}

/// A guest is killed and another takes its socket, twice, during a transfer to the other guest.
fn returns() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("returns"));
    let (rxo, _) = Rxo::guests(lab.host(), &sockets.flags(&["", ""]));
    let (long, short) = (pattern(40_000_000), pattern(2_000_000));
    let steady = sockets.sink(&lab, 0);
    thread::scope(|scope| {
        let sender = scope.spawn(|| send(lab.peer(), 0, &long));
        for _ in 0..2 {
            let mut leaves = sockets.sink(&lab, 1);
            let stream = connect(lab.peer(), &format!("{}:7000", address(1)));
            (&stream).write_all(&short[..100_000]).unwrap();
            leaves.kill().unwrap();
            leaves.wait().unwrap();
        }
        let returned = sockets.sink(&lab, 1);
        send(lab.peer(), 1, &short);
        received(returned, &short);
        sender.join().unwrap();
    });
    received(steady, &long);
    let (code, _, said) = {
        rxo.signal("INT");
        rxo.end()
    };
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1.sock: the guest has gone"), "{said}");
}

/// Guest 1 takes an IP address that is not in its flag: nobody learns where it is.
fn guarded() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("guarded"));
    let [own, other] = [2, 3].map(|host| format!(",mac=52:54:00:00:00:0{host},ip=10.77.0.{host}"));
    let flags = format!("{} --stats 100ms", sockets.flags(&[&own, &other]));
    let (mut rxo, configuration) = Rxo::guests(lab.host(), &flags);
    assert_eq!(configuration["guests"][1]["ips"][0], "10.77.0.3");
    let host = |guest: usize, ip: u8| {
        let path = sockets.path(guest);
        format!("--nic virtio:{path} --ip 10.77.0.{ip}/24 --mac 52:54:00:00:00:0{}", 2 + guest)
    };
    let bytes = pattern(1_000_000);
    let line = |host: &str| format!("sink {host} --listen 7000 --hash --json --interval 0s");
    let good = spawn(lab.host(), &line(&host(0, 2)));
    send(lab.peer(), 0, &bytes);
    received(good, &bytes);
    let mut thief = spawn(lab.host(), &line(&host(1, 9)));
    // The guest has asked whether others have the address.
    while rxo.next()["guests"][1]["refused"].as_u64() == Some(0) {}
    // A request for the address gets no answer.
    let stream = lab.peer().run(|| {
        let to = "10.77.0.9:7000".parse().unwrap();
        std::net::TcpStream::connect_timeout(&to, Duration::from_secs(3))
    });
    assert!(stream.unwrap().is_err());
    thief.kill().unwrap();
    thief.wait().unwrap();
    let totals = totals(rxo);
    let dropped = &totals["switch"]["dropped"];
    assert!(dropped["foreign_neighbour"].as_u64() > Some(0), "{dropped}");
    assert_eq!(totals["guests"][0]["refused"], 0, "{dropped}");
}

fn isolated() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("isolated"));
    let flags = sockets.flags(&[",isolated=yes"; 2]);
    let (rxo, _) = Rxo::guests(lab.host(), &flags);
    let bytes = pattern(1_000_000);
    let sinks = [0, 1].map(|guest| sockets.sink(&lab, guest));
    for (guest, sink) in sinks.into_iter().enumerate() {
        send(lab.peer(), guest, &bytes);
        received(sink, &bytes);
    }
    let mut sink = sockets.sink(&lab, 1);
    let (host, to) = (sockets.host(0), address(1));
    let source = format!("source {host} {to}:7000 --bytes 1000 --json --interval 0s");
    let output = run(lab.host(), &source);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot connect"), "{said}");
    sink.kill().unwrap();
    sink.wait().unwrap();
    totals(rxo);
}

/// Several guests run at once. Each could have eight pairs of queues.
fn many() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("many"));
    let (rxo, _) = Rxo::guests_within(lab.host(), &sockets.flags(&[""; 24]), 256);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", rxo.worker())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let soft: usize = line.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert!(soft >= 24 * rxo_driver::GUEST_FILES, "{line}");
    totals(rxo);
}

/// Guest 0 stops with a full ring. The transfer to guest 1 completes nevertheless, frames for guest 0 are
/// dropped and counted, and its own transfer continues when guest 0 does.
fn stopped() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("stopped"));
    let flags = format!("{} --stats 100ms", sockets.flags(&["", ""]));
    let (mut rxo, _) = Rxo::guests(lab.host(), &flags);
    let bytes = pattern(6_000_000);
    let (still, lively) = (sockets.sink(&lab, 0), sockets.sink(&lab, 1));
    let stream = connect(lab.peer(), &format!("{}:7000", address(0)));
    (&stream).write_all(&bytes[..1_000_000]).unwrap();
    signal("STOP", still.id());
    let socket = lab.peer().run(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    wait_until_dropped(&mut rxo, &socket);
    send(lab.peer(), 1, &bytes);
    received(lively, &bytes);
    signal("CONT", still.id());
    send_all(&stream, &bytes[1_000_000..]);
    received(still, &bytes);
    let totals = totals(rxo);
    let dropped = |guest: usize| totals["guests"][guest]["dropped"].as_u64().unwrap();
    assert!(dropped(0) >= MANY, "{totals}");
    assert!(dropped(1) < MANY, "only what came before it had started: {totals}");
}

/// A number of frames that exceeds the broadcasts which a guest misses before it starts.
const MANY: u64 = 1_000;

/// Sends datagrams to guest 0 until rxo reports that it dropped many.
fn wait_until_dropped(rxo: &mut Rxo, socket: &UdpSocket) {
    let mut dropped = 0;
    // One line every 100 ms: for more than a minute.
    for _ in 0..1_000 {
        for _ in 0..500 {
            socket.send_to(&[0; 1_000], (address(0), 9)).unwrap();
        }
        let line = rxo.next();
        dropped += line["guests"][0]["dropped"].as_u64().unwrap_or(0);
        if dropped >= MANY {
            return;
        }
    }
    panic!("nothing is dropped for a guest that does not read");
}

fn killed() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("killed"));
    let flags = sockets.flags(&["", ""]);
    let (rxo, _) = Rxo::guests(lab.host(), &flags);
    let bytes = pattern(10_000_000);
    let sinks = [sockets.sink(&lab, 0), sockets.sink(&lab, 1)];
    let streams = [0, 1].map(|n| connect(lab.peer(), &format!("{}:7000", address(n))));
    streams.iter().for_each(|mut stream| stream.write_all(&bytes[..1_000_000]).unwrap());
    let worker = rxo.worker();
    signal("KILL", rxo.restorer());
    rxo.signal_worker("KILL");
    rxo.signal("KILL");
    drop(rxo);
    wait_until("the worker ends", || !Path::new(&format!("/proc/{worker}")).exists());
    assert!(Path::new(&sockets.path(0)).exists(), "a killed process leaves its sockets");
    let (rxo, _) = Rxo::guests(lab.host(), &flags);
    for stream in &streams {
        send_all(stream, &bytes[1_000_000..]);
    }
    sinks.into_iter().for_each(|sink| received(sink, &bytes));
    totals(rxo);
}

fn unplugged() {
    for (waits, flag) in [
        (false, ""),
        (true, " --wait-for-nic"),
        (false, " --workers 2"),
        (true, " --wait-for-nic --workers 2"),
    ] {
        let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("unplugged"));
        let (rxo, _) = Rxo::guests(lab.host(), &format!("{}{flag}", sockets.flags(&["", ""])));
        let (sink, bytes) = (sockets.sink(&lab, 0), pattern(1_000_000));
        drop(connect(lab.peer(), &format!("{}:7000", address(0))));
        sink.wait_with_output().unwrap();
        lab.peer().interface(Lab::PEER_INTERFACE).delete().unwrap();
        if !waits {
            let (code, _, said) = rxo.end();
            assert_eq!(code, Some(1), "{said}");
            assert!(said.contains("wire0"), "{said}");
            continue;
        }
        ask_for_features(&sockets.path(1));
        lab.connect_again(Lab::WIRE_INTERFACE).unwrap();
        let sink = sockets.sink(&lab, 1);
        send(lab.peer(), 1, &bytes);
        received(sink, &bytes);
        totals(rxo);
    }
}

/// Sends GET_FEATURES, the first request of a virtual machine monitor, and waits for the reply as its guest
/// would.
fn ask_for_features(path: &str) {
    let mut front = UnixStream::connect(path).unwrap();
    front.set_read_timeout(Some(LONG)).unwrap();
    // GET_FEATURES, version 1, no payload.
    let request = [1_u32, 1, 0].map(u32::to_ne_bytes).concat();
    front.write_all(&request).unwrap();
    let mut reply = [0; 20];
    front.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..4], request[..4]);
}

fn refused() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("refused"));
    let (rxo, _) = Rxo::guests(lab.host(), &sockets.flags(&[""]));
    let taken = sockets.path(0);
    let rows = [
        (
            format!("--nic tap:other --vhost a={taken},learn=yes"),
            1,
            "a process listens there; end it",
        ),
        (format!("--nic packet:wire0 --vhost a={taken}x,learn=yes"), 1, "another rxo"),
        ("--nic packet:none --vhost a=/tmp/s,learn=yes".to_owned(), 2, "--nic: "),
        ("--nic tun:t --vhost a=/tmp/s,learn=yes".to_owned(), 2, "carries IP packets"),
        ("--nic packet:wire0 --vhost a".to_owned(), 2, "--vhost a: write NAME=PATH"),
        ("--nic packet:wire0 --vhost a=/tmp/s".to_owned(), 2, "--vhost a=/tmp/s: give its address"),
        ("--nic tap:other --vhost a=/nowhere/s,learn=yes".to_owned(), 1, "/nowhere"),
    ];
    for (flags, code, part) in rows {
        let output = run(lab.host(), &format!("guest {flags}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{flags}: {said}");
        assert!(said.contains(part), "{flags}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    }
    totals(rxo);
}

fn dry() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("dry"));
    let flags = sockets.flags(&[",mac=52:54:00:00:00:02", ",vlan=7"]);
    let output = run(lab.host(), &format!("guest {flags} --dry-run"));
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "0.sock, address 52:54:00:00:00:02, no VLAN",
        "1.sock, address learned, VLAN 7",
        "g0: qemu-system-x86_64 … -m 1G -object memory-backend-memfd,id=g0-mem,size=1G,share=on",
        "-chardev socket,id=g0,path=",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let output = run(lab.host(), &format!("guest {flags} --dry-run --json"));
    let configuration: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(configuration["guests"][1]["vlan"], 7);
    assert!(!Path::new(&sockets.path(0)).exists());
}
