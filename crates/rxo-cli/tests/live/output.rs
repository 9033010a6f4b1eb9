//! Output that cannot be written never ends a run: a full disk, a pipe without reads, and a pipe whose reader
//! is gone.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{Lab, LabOptions};
use serde_json::Value;

use crate::Test;
use crate::manager::Manager;
use crate::process::{LONG, command, signal, wait_until};
use crate::report::Scratch;
use crate::setup::SetUp;

pub(crate) const TESTS: &[Test] = &[
    ("a_full_disk_ends_no_run", a_full_disk),
    ("a_disk_that_has_room_again_gets_lines_again", a_disk_with_room_again),
    ("a_full_disk_ends_no_server", a_full_disk_under_a_server),
    ("a_reader_that_has_gone_ends_no_run", a_reader_that_has_gone),
    ("a_log_that_nobody_reads_stops_no_run", a_hung_log),
    ("every_line_has_time_level_and_nic", every_line),
];

const FLAGS: &str = "--json --stats 100ms --nic packet:eth1 --host tap:rxo0 --take-over";

/// A run with given files for its output and its log.
struct Run {
    lab: Lab,
    child: Child,
}

impl Run {
    /// Starts the run, and waits until the nic's whole configuration has moved.
    fn start(output: impl Into<Stdio>, log: impl Into<Stdio>, flags: &str) -> Self {
        let (lab, manager) = (SetUp::TakeOver.lab(LabOptions::default()), Manager::new("output"));
        let mut rxo = command(&format!("run {FLAGS} {flags}"));
        rxo.stdin(Stdio::null()).stdout(output).stderr(log).env("NOTIFY_SOCKET", manager.path());
        let child = lab.host().run(|| rxo.spawn()).unwrap().unwrap();
        assert_eq!(manager.next(), "READY=1");
        Self { lab, child }
    }

    /// Checks that the host receives bytes for as long as some intervals of output.
    fn carries(&mut self) {
        let limit_bytes_per_s = Some(10_000_000);
        let config = BulkConfig { connections: 2, limit_bytes_per_s, ..BulkConfig::default() };
        let (peer, host) = (self.lab.peer(), self.lab.host());
        let transfer = BulkTransfer::start(peer, host, self.lab.host_address(), &config).unwrap();
        wait_until("bytes cross", || transfer.received_bytes() > 15_000_000);
        assert!(transfer.stop().unwrap().is_intact());
        assert_eq!(self.child.try_wait().unwrap(), None, "it has ended");
    }

    /// Sends SIGTERM, and returns the exit code.
    fn end(&mut self) -> Option<i32> {
        signal("TERM", self.child.id());
        let code = self.child.wait().unwrap().code();
        assert!(!self.lab.host().interface("rxo0").exists());
        code
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // If the test passed, the process has already ended.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

fn a_full_disk() {
    let (mut log, writer) = std::io::pipe().unwrap();
    let mut run = Run::start(full(), writer, "");
    run.carries();
    // The totals are the result of the run, and they could not be written.
    assert_eq!(run.end(), Some(3));
    let mut said = String::new();
    log.read_to_string(&mut said).unwrap();
    assert_eq!(said.matches("cannot be written: No space left on device").count(), 1, "{said}");
    assert!(said.contains("lines are not printed"), "{said}");
    // Neither output nor log can be written.
    let mut run = Run::start(full(), full(), "");
    run.carries();
    assert_eq!(run.end(), Some(3));
}

/// A number of answers that exceeds the queue of lines. No line can be written meanwhile.
fn a_full_disk_under_a_server() {
    let scratch = Scratch::new("served");
    let directory = scratch.file("www");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("page"), "text").unwrap();
    let lab = Lab::through().unwrap();
    let flags = "--nic packet:wire0 --ip 10.77.0.2/24";
    let mut rxo = command(&format!("serve {} {flags}", directory.display()));
    rxo.stdin(Stdio::null()).stdout(full()).stderr(full());
    let mut child = lab.host().run(|| rxo.spawn()).unwrap().unwrap();
    let connect = || lab.peer().run(|| TcpStream::connect("10.77.0.2:80")).unwrap();
    let begun = Instant::now();
    let mut client = loop {
        match connect() {
            Ok(client) => break client,
            Err(error) => assert!(begun.elapsed() < LONG, "{error}"),
        }
        thread::sleep(Duration::from_millis(20));
    };
    client.set_read_timeout(Some(LONG)).unwrap();
    for answer in 0..1_500 {
        client.write_all(b"GET /page HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut text = Vec::new();
        while !text.ends_with(b"\r\n\r\ntext") {
            let mut part = [0; 1_000];
            let read = client.read(&mut part).unwrap();
            assert!(read > 0, "closed after {answer} answers");
            text.extend_from_slice(&part[..read]);
        }
    }
    drop(client);
    signal("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

/// A separate disk of the minimum size.
pub(crate) struct SmallDisk(Scratch);

impl SmallDisk {
    pub(crate) fn mount() -> Self {
        let scratch = Scratch::new("small");
        let disk = Self(scratch);
        let path = disk.0.file("disk");
        fs::create_dir_all(&path).unwrap();
        run(&format!("mount -t tmpfs -o size=64k none {}", path.display()));
        disk
    }

    /// Returns the path of a file on this disk.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.file("disk").join(name)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        run(&format!("umount -l {}", self.0.file("disk").display()));
    }
}

fn run(line: &str) {
    assert!(Command::new("sh").args(["-c", line]).status().unwrap().success(), "{line}");
}

fn a_disk_with_room_again() {
    let disk = SmallDisk::mount();
    let (ballast, lines) = (disk.file("ballast"), disk.file("lines"));
    fs::write(&ballast, vec![0; 48 << 10]).unwrap();
    let file = File::create(&lines).unwrap();
    let full_at = |bytes: u64| fs::metadata(&lines).unwrap().len() >= bytes;
    let mut run = Run::start(file, Stdio::null(), "");
    wait_until("the disk is full", || full_at(16 << 10));
    run.carries();
    fs::remove_file(&ballast).unwrap();
    wait_until("lines come again", || full_at(20 << 10));
    assert_eq!(run.end(), Some(0));
    let text = fs::read_to_string(&lines).unwrap();
    let parsed: Vec<Option<Value>> =
        text.lines().map(|line| serde_json::from_str(line).ok()).collect();
    // The line that met the full disk is truncated; all others are complete.
    assert!(parsed.iter().filter(|line| line.is_none()).count() <= 1, "{text}");
    let of = |kind: &str| {
        parsed.iter().flatten().filter(|line| line["kind"] == kind).cloned().collect::<Vec<_>>()
    };
    let skipped: u64 = of("skipped").iter().map(|line| line["intervals"].as_u64().unwrap()).sum();
    assert!(skipped > 0, "{text}");
    assert_eq!(of("totals").len(), 1, "{text}");
}

fn a_reader_that_has_gone() {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut run = Run::start(OwnedFd::from(writer), Stdio::null(), "");
    // Reads one line and closes, like `head -1`.
    let mut reader = BufReader::new(reader);
    assert!(reader.read_line(&mut String::new()).unwrap() > 0);
    drop(reader);
    run.carries();
    assert_eq!(run.end(), Some(0));
}

/// The log of keeper and worker goes to a pipe without a reader.
fn a_hung_log() {
    let (reader, writer) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&writer, 4_096).unwrap();
    let output = File::options().write(true).open("/dev/null").unwrap();
    let mut run = Run::start(output, writer, "");
    let tap = run.lab.host().interface(Lab::NIC);
    let unread = || rustix::io::ioctl_fionread(&reader).unwrap();
    // Each link failure writes two lines.
    while unread() < 3_900 {
        let before = unread();
        tap.down().unwrap();
        tap.up().unwrap();
        let parked = run.lab.host().interface("eth1-nic");
        parked.down().unwrap();
        wait_until("it is said", || unread() > before || unread() >= 3_900);
        parked.up().unwrap();
        let before = unread();
        wait_until("it is said", || unread() > before || unread() >= 3_900);
    }
    run.carries();
    assert_eq!(run.end(), Some(0));
    drop(reader);
}

fn every_line() {
    for form in ["text", "json"] {
        let (mut log, writer) = std::io::pipe().unwrap();
        let (output, writer_of_output) = std::io::pipe().unwrap();
        let mut run = Run::start(writer_of_output, writer, &format!("--log {form}"));
        let parked = run.lab.host().interface("eth1-nic");
        parked.down().unwrap();
        let mut lines = BufReader::new(output).lines().map(|line| line.unwrap());
        let notice = lines.by_ref().map(|line| serde_json::from_str::<Value>(&line).unwrap());
        let notice = notice.into_iter().inspect(|line| {
            assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
            assert_eq!(line["nic"], "packet:eth1", "{line}");
            assert!(["info", "notice"].contains(&line["level"].as_str().unwrap()), "{line}");
        });
        notice.into_iter().find(|line| line["kind"] == "notice").unwrap();
        parked.up().unwrap();
        drop(lines);
        assert_eq!(run.end(), Some(0));
        let mut said = String::new();
        log.read_to_string(&mut said).unwrap();
        let first = said.lines().next().unwrap();
        if form == "text" {
            let (time, rest) = first.split_once(' ').unwrap();
            assert!(time.starts_with("20") && time.ends_with('Z'), "{said}");
            assert!(rest.starts_with("notice packet:eth1: "), "{said}");
        } else {
            let line: Value = serde_json::from_str(first).unwrap();
            assert!(line["time"].as_str().unwrap().ends_with('Z'), "{said}");
            assert_eq!((&line["level"], &line["nic"]), (&"notice".into(), &"packet:eth1".into()));
            assert!(line["text"].as_str().unwrap().contains("is down"), "{said}");
        }
    }
}
