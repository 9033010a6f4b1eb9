//! Receivers of a cast, each in its own network namespace, behind a bridge that forwards a group only to its
//! members.

mod endings;
mod sender;

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::{Namespace, RateLimit, create_veth};
use serde_json::Value;

use self::sender::{Cast, SENDER};
use crate::Test;
use crate::endpoint::pattern;
use crate::metrics::socket_page;
use crate::privileges::{NOBODY, has_nobody};
use crate::process::{command, spawn, wait_until};
use crate::report::Scratch;

pub(crate) const TESTS: &[Test] = &[
    ("receivers_of_a_cast_get_the_file_and_a_restarted_one_too", receivers),
    ("cast_send_to_three_of_which_one_is_killed_and_comes_again", sent_by_command),
    ("cast_send_to_fewer_than_it_waited_for_fails_and_names_who_was_refused", too_few),
    ("linux_receives_a_cast_beside_cast_join", linux),
    ("linux_behind_an_interface_of_cast_join_receives_a_cast", linux_behind),
    ("a_terminal_shows_a_cast_that_linux_receives_beside_cast_join", on_a_terminal),
    ("a_cast_is_received_as_another_user_into_a_folder_of_its_own", another_user),
    ("without_a_sender_there_is_no_file", no_sender),
    ("receivers_of_a_cast_whose_sender_is_killed_fail_and_leave_no_file", endings::killed_sender),
    ("receivers_of_a_cast_that_cannot_write_fail_alone", endings::cannot_write),
    ("a_cast_whose_only_receiver_ends_says_what_was_sent", endings::only_receiver_gone),
    ("a_signal_ends_a_cast_at_the_sender", endings::signalled_sender),
    ("a_signal_ends_one_receiver_of_a_cast", endings::signalled_receiver),
    ("rxo_cast_without_privileges_says_which_it_needs", endings::without_privileges),
];

/// Hosts with one interface each, eth0, that has no address in the kernel.
struct Rack {
    _switch: Namespace,
    hosts: Vec<Namespace>,
}

impl Rack {
    fn new(count: usize) -> Self {
        let switch = Namespace::new("switch").unwrap();
        let bridge = switch.interface("br0");
        bridge.create_querier().unwrap();
        bridge.up().unwrap();
        let hosts = (0..count).map(|number| {
            let host = Namespace::new(&format!("host {number}")).unwrap();
            if host.has_ipv6() {
                host.set_sysctl("net.ipv6.conf.default.disable_ipv6", "1").unwrap();
            }
            let (near, far) = (host.interface("eth0"), switch.interface(&format!("port{number}")));
            create_veth(&near, &far).unwrap();
            far.join_bridge(&bridge).unwrap();
            far.up().unwrap();
            near.up().unwrap();
            host
        });
        let hosts = hosts.collect();
        Self { hosts, _switch: switch }
    }
}

/// Returns the stream that docs/cast-protocol.md defines, with hashes that `sha256sum` computes.
fn stream(scratch: &Scratch, name: &str, file: &[u8]) -> Vec<u8> {
    let path = scratch.file("block");
    let hashes = file.chunks(256 << 10).map(|block| {
        fs::write(&path, block).unwrap();
        let output = Command::new("sha256sum").arg(&path).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (0..32).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
    });
    let hashes: Vec<Vec<u8>> = hashes.collect();
    let length = (file.len() as u64).to_be_bytes();
    let head = [b"RXOCAST2", &length[..], &(name.len() as u16).to_be_bytes(), name.as_bytes()];
    [&head.concat(), &hashes.concat(), file].concat()
}

const GROUP: &str = "--group 232.1.1.1:7000";

/// Starts `rxo cast receive` in `folder`.
fn receive(host: &Namespace, number: usize, folder: &Path) -> Child {
    fs::create_dir_all(folder).unwrap();
    let line = format!(
        "cast receive {SENDER}:7000 --nic packet:eth0 --ip 10.0.0.{number}/24 {GROUP} --json"
    );
    host.run(|| command(&line).current_dir(folder).spawn()).unwrap().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Runs the commands on both sides as docs/cast.md shows them. One receiver is killed and started again, so
/// that in the end all have the file.
fn sent_by_command() {
    let (rack, scratch) = (Rack::new(4), Scratch::new("cast-send"));
    let file = pattern(120_000_000);
    let original = scratch.file("image.img");
    fs::write(&original, &file).unwrap();
    let line = format!(
        "cast send {} --nic packet:eth0 --ip {SENDER}/24 {GROUP} --receivers 3 --late catch-up --slow eject:2s \
         --fast-path on --json",
        original.display()
    );
    let mut sender = rack.hosts[0].run(|| command(&line).spawn()).unwrap().unwrap();
    let said = sender.stdout.take().unwrap();
    let said = thread::spawn(move || {
        let lines = BufReader::new(said).lines().map(|line| (line.unwrap(), Instant::now()));
        (lines.collect::<Vec<_>>(), Instant::now())
    });
    let folders: Vec<_> = (0..3).map(|number| scratch.file(&format!("r{number}"))).collect();
    let start = |index: usize| receive(&rack.hosts[1 + index], 10 + index, &folders[index]);
    let mut children: Vec<Child> = (0..3).map(start).collect();
    let sent = || rack.hosts[0].interface("eth0").counters().unwrap().sent_bytes;
    wait_until("a part of the file is sent", || sent() > 10_000_000);
    children[0].kill().unwrap();
    children[0].wait().unwrap();
    children[0] = start(0);
    for (index, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.as_str()), (Some(0), ""), "receiver {index}");
        assert!(fs::read(folders[index].join("image.img")).unwrap() == file, "receiver {index}");
    }
    let (said, ended_at) = said.join().unwrap();
    assert_eq!(sender.wait().unwrap().code(), Some(0), "{said:?}");
    let (total, _) = said.last().unwrap();
    // A receiver that missed the last ACK repeats its segment, and the sender must answer. Others may be waited for
    // after it.
    let is_done = |(line, _): &&(String, Instant)| line.contains("\"outcome\":\"done\"");
    let stayed = ended_at - said.iter().rfind(is_done).unwrap().1;
    assert!(stayed > Duration::from_millis(500), "it ended {stayed:?} after its last receiver");
    let total: Value = serde_json::from_str(total).unwrap();
    let counts = ["receivers", "done", "failed"].map(|name| total[name].as_u64().unwrap());
    assert_eq!(counts, [4, 3, 1], "{said:?}");
    assert!(total["fast_path"]["consumed"].as_u64().unwrap() > 0, "{total}");
    // One ACK of 66 bytes for 16 segments of each receiver is 0.9 % of the bytes; one for each segment would
    // make it 14 %. Here a receiver often gets 64 KB at a time, for one ACK.
    let share = total["return_share"].as_f64().unwrap();
    assert!((0.000_5..0.1).contains(&share), "{total}");
    // Three receivers acknowledge at most one of 16 segments each, fewer by one ACK for all that arrives together,
    // and more while one of them catches up.
    let acks = total["acks_a_segment"].as_f64().unwrap();
    assert!((0.005..2.0).contains(&acks), "{total}");
    assert_eq!(
        (total["expected"].as_u64(), total["refused"].as_u64()),
        (Some(3), Some(0)),
        "{total}"
    );
    // Each byte was sent once; those that the restarted receiver had missed were sent twice.
    assert!(sent() < 300_000_000, "{}", sent());
}

/// One of two expected receivers connects, and a host without SACK, which is refused. The receiver gets the
/// file, and the sender exits with 1.
fn too_few() {
    let (rack, scratch) = (Rack::new(3), Scratch::new("cast-few"));
    let file = pattern(1_000_000);
    let original = scratch.file("image.img");
    fs::write(&original, &file).unwrap();
    let line = format!(
        "cast send {} --nic packet:eth0 --ip {SENDER}/24 {GROUP} --receivers 2 --wait 4s --json",
        original.display()
    );
    let sender = rack.hosts[0].run(|| command(&line).spawn()).unwrap().unwrap();
    let folder = scratch.file("r");
    let receiver = receive(&rack.hosts[1], 10, &folder);
    let other = &rack.hosts[2];
    other.set_sysctl("net.ipv4.tcp_sack", "0").unwrap();
    other.interface("eth0").add_address("10.0.0.11".parse().unwrap(), 24).unwrap();
    let reset = || {
        let mut stream = TcpStream::connect((SENDER, 7_000)).ok()?;
        Some(stream.read(&mut [0]).is_err())
    };
    wait_until("the host without SACK is reset", || other.run(reset).unwrap() == Some(true));
    assert!(receiver.wait_with_output().unwrap().status.success());
    assert!(fs::read(folder.join("image.img")).unwrap() == file);
    let output = sender.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = "rxo: 1 of 2 receivers came within 4s; 1 was refused: 10.0.0.11, it has no SACK; switch that on";
    assert_eq!((output.status.code(), said.lines().last()), (Some(1), Some(last)), "{said}");
    let total: Value =
        serde_json::from_slice(output.stdout.split(|it| *it == b'\n').nth(1).unwrap()).unwrap();
    let counts = ["expected", "receivers", "done", "failed", "refused"];
    assert_eq!(counts.map(|name| total[name].as_u64().unwrap()), [2, 1, 1, 0, 1], "{total}");
}

/// The receiver works as the user of `--user`: it can write into that user's folder, but not into one of
/// root's.
fn another_user() {
    if !has_nobody() {
        return;
    }
    let (rack, scratch) = (Rack::new(3), Scratch::new("cast-user"));
    let file = pattern(1_000_000);
    let original = scratch.file("image.img");
    fs::write(&original, &file).unwrap();
    let line = format!(
        "cast send {} --nic packet:eth0 --ip {SENDER}/24 {GROUP} --receivers 2",
        original.display()
    );
    let sender = rack.hosts[0].run(|| command(&line).spawn()).unwrap().unwrap();
    let children = [("own", NOBODY, 10), ("roots", 0, 11)].map(|(name, owner, number)| {
        let folder = scratch.file(name);
        fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::chown(&folder, Some(owner), Some(owner)).unwrap();
        let line = format!(
            "cast receive {SENDER}:7000 --nic packet:eth0 --ip 10.0.0.{number}/24 {GROUP} --user {NOBODY}:{NOBODY}"
        );
        let mut receiver = command(&line);
        receiver.current_dir(&folder);
        let host = &rack.hosts[number as usize - 9];
        (host.run(|| receiver.spawn()).unwrap().unwrap(), folder)
    });
    let [(own, folder), (roots, roots_folder)] = children;
    let output = own.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = folder.join("image.img");
    assert!(fs::read(&path).unwrap() == file);
    assert_eq!(fs::metadata(&path).unwrap().uid(), NOBODY);
    let output = roots.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("image.img cannot be written: Permission denied"), "{said}");
    assert_eq!(names(&roots_folder), [""; 0]);
    // One of two receivers has the file.
    assert_eq!(sender.wait_with_output().unwrap().status.code(), Some(1));
}

/// Three receivers, 1 % loss. One is killed half way and started again; a host that is no receiver gets no
/// segments.
fn receivers() {
    let (rack, scratch) = (Rack::new(5), Scratch::new("cast"));
    let file = pattern(12_000_000);
    let stream = stream(&scratch, "image.img", &file);
    let cast = Cast { stream, receivers: 3, one_lost_of: 100 }.start(&rack.hosts[0]);
    let folders: Vec<_> = (0..3).map(|number| scratch.file(&format!("r{number}"))).collect();
    // The bridge forwards only to members after it has been a querier for some time.
    thread::sleep(Duration::from_secs(2));
    let before = rack.hosts[4].interface("eth0").counters().unwrap().received_bytes;
    let start = |index: usize| receive(&rack.hosts[1 + index], 10 + index, &folders[index]);
    let mut children: Vec<Child> = (0..3).map(start).collect();
    let sent = || rack.hosts[0].interface("eth0").counters().unwrap().sent_bytes;
    wait_until("a part of the file is sent", || sent() > 2_000_000);
    children[0].kill().unwrap();
    children[0].wait().unwrap();
    assert!(!names(&folders[0]).iter().any(|name| name == "image.img"), "half a file");
    children[0] = start(0);
    for (index, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.as_str()), (Some(0), ""), "receiver {index}");
        assert!(fs::read(folders[index].join("image.img")).unwrap() == file, "receiver {index}");
        let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(figures["bytes"], 12_000_000);
        assert!(figures["acks_a_segment"].as_f64().unwrap() < 0.5, "{figures}");
    }
    let fared = cast.join().unwrap().unwrap();
    assert!(fared.len() == 3 && fared.iter().all(|one| one.is_done), "{fared:?}");
    // The smallest window limits the group: it must not be a share of the ring for connections that do not exist.
    assert!(fared.iter().all(|one| one.window >= 512 << 10), "{fared:?}");
    let seen = rack.hosts[4].interface("eth0").counters().unwrap().received_bytes - before;
    assert!(seen < 1_000_000, "the bridge floods the group: {seen} bytes reach a host beside");
}

/// A namespace with Linux's TCP receives the cast; `rxo cast join` runs in it.
fn linux() {
    let rack = Rack::new(2);
    let host = &rack.hosts[1];
    received_by_linux(&rack, "tap:cast0", host, "cast0");
}

/// The namespace is behind the filter's second interface, a veth, on which Linux leaves checksums incomplete.
fn linux_behind() {
    let rack = Rack::new(2);
    let behind = Namespace::new("behind").unwrap();
    let (near, far) = (rack.hosts[1].interface("lan0"), behind.interface("eth0"));
    create_veth(&near, &far).unwrap();
    near.up().unwrap();
    far.up().unwrap();
    received_by_linux(&rack, "packet:lan0", &behind, "eth0");
}

/// Sends a cast to Linux in the namespace `receiver`. The filter runs in the rack's second host on `device`,
/// and the receiver's `interface` leads there.
fn received_by_linux(rack: &Rack, device: &str, receiver: &Namespace, interface: &str) {
    let file = pattern(8_000_000);
    let cast = Cast { stream: file.clone(), receivers: 1, one_lost_of: 100 }.start(&rack.hosts[0]);
    let scratch = Scratch::new("cast-join");
    let metrics = scratch.file("metrics.sock");
    let line = format!(
        "cast join {SENDER}:7000 --nic packet:eth0 --host {device} {GROUP} --metrics unix:{}",
        metrics.display()
    );
    let mut filter = spawn(&rack.hosts[1], &line);
    let mut lines = BufReader::new(filter.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("joining 232.1.1.1 from 10.0.0.1"));
    let address: IpAddr = "10.0.0.6".parse().unwrap();
    receiver.interface(interface).add_address(address, 24).unwrap();
    let got = receiver.run(|| {
        let mut stream = TcpStream::connect((SENDER, 7_000)).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).map(|_| all)
    });
    assert!(got.unwrap().unwrap() == file, "what was sent");
    let fared = cast.join().unwrap().unwrap();
    assert!(fared.len() == 1 && fared[0].is_done, "{fared:?}");
    let page = socket_page(&metrics);
    assert!(page["rxo_nic_in_packets_total"] > 5_000.0, "{page:?}");
    let stop = format!("kill -INT {}", filter.id());
    assert!(Command::new("sh").args(["-c", &stop]).status().unwrap().success());
    let figures = lines.next().unwrap().unwrap();
    assert!(filter.wait().unwrap().success());
    let given: u64 = figures.split(' ').next().unwrap().replace(',', "").parse().unwrap();
    assert!(given > 5_000, "the text came to the group: {figures}");
    assert_eq!(page["rxo_group_given_total"], given as f64);
}

/// Runs `rxo cast send --raw` on a terminal, with a receiver that uses Linux's TCP: one line shows all
/// receivers during the transfer.
fn on_a_terminal() {
    let (rack, scratch) = (Rack::new(2), Scratch::new("cast-terminal"));
    let file = pattern(15_000_000);
    let original = scratch.file("image.img");
    fs::write(&original, &file).unwrap();
    // Slow enough that progress is shown.
    rack.hosts[0].interface("eth0").limit_rate(RateLimit::new(5_000_000)).unwrap();
    let line = format!(
        "{} cast send {} --raw --nic packet:eth0 --ip {SENDER}/24 {GROUP} --receivers 1 --fast-path on",
        env!("CARGO_BIN_EXE_rxo"),
        original.display()
    );
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let terminal = rack.hosts[0].run(|| terminal.spawn()).unwrap().unwrap();
    let host = &rack.hosts[1];
    let line = format!("cast join {SENDER}:7000 --nic packet:eth0 --host tap:cast0 {GROUP}");
    let mut filter = spawn(host, &line);
    let mut lines = BufReader::new(filter.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("joining 232.1.1.1 from 10.0.0.1"));
    host.interface("cast0").add_address("10.0.0.6".parse().unwrap(), 24).unwrap();
    // The sender may not listen yet.
    let connected = || TcpStream::connect((SENDER, 7_000)).ok();
    let stream = RefCell::new(None);
    wait_until("the sender takes the connection", || {
        *stream.borrow_mut() = host.run(connected).unwrap();
        stream.borrow().is_some()
    });
    let mut all = Vec::new();
    stream.into_inner().unwrap().read_to_end(&mut all).unwrap();
    assert!(all == file, "what was sent");
    let output = terminal.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    let shown = said.split('\r').filter(|line| line.contains("1 receivers, 0 done, 0 failed"));
    let parts = ["sent ", "median ", "slowest ", "(10.0.0.6:", "repairs: "];
    let is_whole = |line: &str| parts.iter().all(|part| line.contains(part));
    assert!(shown.clone().count() >= 3 && shown.into_iter().all(is_whole), "{said}");
    assert!(said.contains("10.0.0.6:") && said.contains(": done; 15,000,000 bytes"), "{said}");
    assert!(
        said.contains("; the return link carried ") && said.contains(" ACKs a segment"),
        "{said}"
    );
    assert!(said.contains("fast path (pure-ack): "), "{said}");
    let stop = format!("kill -INT {}", filter.id());
    assert!(Command::new("sh").args(["-c", &stop]).status().unwrap().success());
    assert!(filter.wait().unwrap().success());
}

/// Without a sender the receiver fails with one line, and leaves nothing in the folder.
fn no_sender() {
    let (rack, scratch) = (Rack::new(1), Scratch::new("cast-none"));
    let folder = scratch.file("r");
    fs::create_dir_all(&folder).unwrap();
    let line =
        format!("cast receive {SENDER}:7000 --nic packet:eth0 --ip 10.0.0.9/24 {GROUP} --wait 1s");
    let child = rack.hosts[0].run(|| command(&line).current_dir(&folder).spawn()).unwrap().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("rxo: cannot join the cast of 10.0.0.1:7000: "), "{said}");
    assert_eq!((said.lines().count(), names(&folder).len()), (1, 0), "{said}");
}
