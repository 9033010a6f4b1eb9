//! A guest behind `vhost:PATH`: `rxo run` on a real interface, and another rxo process as the guest with
//! `virtio:PATH`, which shares memory with it.

use std::io::Write;
use std::path::PathBuf;
use std::thread;

use rxo_testbed::Lab;
use serde_json::Value;

use crate::Test;
use crate::endpoint::{AT_HOST, connect, hash, json, pattern, read_all, send_all};
use crate::process::{Rxo, run, signal, spawn, wait_until};

pub(crate) const TESTS: &[Test] = &[
    ("a_guest_receives_what_linux_sends", receives),
    ("each_byte_is_copied_as_often_as_the_path_says", copied),
    ("a_guest_sends_what_linux_receives", sends),
    ("a_transfer_to_a_guest_survives_rxo_being_killed", killed),
    ("a_socket_has_one_rxo", refused),
];

/// A socket path in its own folder, which is removed on drop.
pub(crate) struct Socket(PathBuf);

impl Socket {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("rxo-guests-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder.join("vm.sock"))
    }

    /// Returns the flags of a run whose host is the guest on this socket.
    pub(crate) fn run(&self) -> String {
        format!("--nic packet:wire0 --host vhost:{}", self.0.display())
    }

    /// Returns the flags of a card on this socket.
    pub(crate) fn card(&self) -> String {
        format!("--wire packet:wire0 --guest vhost:{}", self.path())
    }

    pub(crate) fn path(&self) -> std::path::Display<'_> {
        self.0.display()
    }

    /// Returns the flags of a host that is the guest on this socket.
    pub(crate) fn guest(&self) -> String {
        format!("--nic virtio:{} --ip 10.77.0.2/24", self.0.display())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(self.0.parent().unwrap());
    }
}

/// Returns the totals of a sink that ended with success, and the hash of its only connection.
pub(crate) fn totals(mut lines: Vec<Value>) -> (Value, String) {
    let totals = lines.pop().unwrap();
    let crc = totals["ends"][0]["crc32"].as_str().unwrap().to_owned();
    (totals, crc)
}

fn receives() {
    let (lab, socket) = (Lab::through().unwrap(), Socket::new("receives"));
    let (rxo, _) = Rxo::start(lab.host(), &socket.run());
    let line = format!("sink {} --listen 7000 --hash --json --interval 0s", socket.guest());
    let sink = spawn(lab.host(), &line);
    let stream = connect(lab.peer(), AT_HOST);
    let bytes = pattern(20_000_000);
    send_all(&stream, &bytes);
    let (totals, crc) = totals(json(&sink.wait_with_output().unwrap()));
    assert_eq!((totals["bytes"].as_u64(), crc), (Some(20_000_000), hash(&bytes)));
    assert!(socket.0.exists());
    rxo.signal("INT");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("a guest has started"), "{said}");
    assert!(!socket.0.exists(), "removed at a normal end");
}

/// Each byte is copied into the guest's memory once.
fn copied() {
    let (lab, socket) = (Lab::through().unwrap(), Socket::new("copied"));
    let (rxo, _) = Rxo::start(lab.host(), &socket.run());
    let line = format!("sink {} --listen 7000 --hash --json --interval 0s", socket.guest());
    let sink = spawn(lab.host(), &line);
    let stream = connect(lab.peer(), AT_HOST);
    let bytes = pattern(2_000_000);
    send_all(&stream, &bytes);
    let (_, crc) = totals(json(&sink.wait_with_output().unwrap()));
    assert_eq!(crc, hash(&bytes));
    rxo.signal("INT");
    let (code, lines, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    let out = &lines.last().unwrap()["host_out"];
    assert_eq!(out["copies"].as_f64(), Some(1.0), "{out}");
    assert!(out["pieces"].as_f64().unwrap() >= 1.0, "{out}");
}

fn sends() {
    let (lab, socket) = (Lab::through().unwrap(), Socket::new("sends"));
    let (rxo, _) = Rxo::start(lab.host(), &socket.run());
    let server = crate::endpoint::serve(&lab, 1, |stream| read_all(&stream).len());
    let line = format!("source {} 10.77.0.1:7000 --bytes 20M --json --interval 0s", socket.guest());
    json(&run(lab.host(), &line));
    assert_eq!(server.join().unwrap(), [20_000_000]);
    rxo.signal("INT");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
}

/// All processes of the run are killed, so that no cleanup happens; the next run replaces the stale socket,
/// the guest reconnects, and the connection continues.
fn killed() {
    let (lab, socket) = (Lab::through().unwrap(), Socket::new("killed"));
    let (rxo, _) = Rxo::start(lab.host(), &socket.run());
    let line = format!("sink {} --listen 7000 --hash --json --interval 0s", socket.guest());
    let sink = spawn(lab.host(), &line);
    let stream = connect(lab.peer(), AT_HOST);
    let bytes = pattern(40_000_000);
    let expected = hash(&bytes);
    let (first, second) = (bytes[..10_000_000].to_vec(), bytes[10_000_000..].to_vec());
    (&stream).write_all(&first).unwrap();
    let worker = rxo.worker();
    signal("KILL", rxo.restorer());
    rxo.signal_worker("KILL");
    rxo.signal("KILL");
    drop(rxo);
    wait_until("the worker ends", || !std::path::Path::new(&format!("/proc/{worker}")).exists());
    assert!(socket.0.exists(), "a killed process leaves its socket");
    let sender = thread::spawn(move || {
        send_all(&stream, &second);
    });
    let (rxo, _) = Rxo::start(lab.host(), &socket.run());
    sender.join().unwrap();
    let (totals, crc) = totals(json(&sink.wait_with_output().unwrap()));
    assert_eq!((totals["bytes"].as_u64(), crc), (Some(40_000_000), expected));
    rxo.signal("INT");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
}

fn refused() {
    let (lab, socket) = (Lab::through().unwrap(), Socket::new("refused"));
    let (rxo, _) = Rxo::start(lab.host(), &socket.run());
    let path = socket.0.display();
    let rows = [
        (format!("run --nic tap:other --host vhost:{path}"), "a process listens there; end it"),
        (format!("run {} --take-over", socket.run()), "--take-over moves what a nic has to a TAP"),
        (
            "sink --nic virtio:/nowhere/s --ip 10.77.0.2/24 --listen 7000".to_owned(),
            "nobody listens",
        ),
    ];
    for (line, part) in rows {
        let output = run(lab.host(), &line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(part), "{line}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    }
    rxo.signal("INT");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
}
