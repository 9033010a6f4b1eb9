//! Casts that end early, for one side or for all.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rxo_testbed::RateLimit;
use serde_json::Value;

use super::sender::SENDER;
use super::{GROUP, Rack, names, receive};
use crate::at_once::at_once;
use crate::endpoint::pattern;
use crate::process::{command, signal, wait_until};
use crate::report::Scratch;

/// A cast to receivers, one in each host except the first, which is slow enough to be interrupted half way.
struct Halfway {
    rack: Rack,
    scratch: Scratch,
    file: Vec<u8>,
    sender: Child,
}

impl Halfway {
    fn new(name: &str, receivers: usize, flags: &str) -> Self {
        let (rack, scratch) = (Rack::new(1 + receivers), Scratch::new(name));
        let file = pattern(15_000_000);
        let original = scratch.file("image.img");
        fs::write(&original, &file).unwrap();
        rack.hosts[0].interface("eth0").limit_rate(RateLimit::new(5_000_000)).unwrap();
        let line = format!(
            "cast send {} --nic packet:eth0 --ip {SENDER}/24 {GROUP} --receivers {receivers} --json {flags}",
            original.display()
        );
        let sender = rack.hosts[0].run(|| command(&line).spawn()).unwrap().unwrap();
        Self { rack, scratch, file, sender }
    }

    fn folder(&self, index: usize) -> PathBuf {
        self.scratch.file(&format!("r{index}"))
    }

    fn receiver(&self, index: usize) -> Child {
        receive(&self.rack.hosts[1 + index], 10 + index, &self.folder(index))
    }

    /// Waits until 2 MB of the file have been sent.
    fn wait_for_a_part(&self) {
        let sent = || self.rack.hosts[0].interface("eth0").counters().unwrap().sent_bytes;
        wait_until("a part of the file is sent", || sent() > 2_000_000);
    }

    fn assert_has_file(&self, index: usize, child: Child) {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "receiver {index}: {}", said(&output));
        assert!(fs::read(self.folder(index).join("image.img")).unwrap() == self.file);
    }

    /// Checks that the receiver exited with `code` and one line that begins with `start`, and left nothing in
    /// its folder. Returns the line.
    fn assert_failed(&self, index: usize, child: Child, code: i32, start: &str) -> String {
        let output = child.wait_with_output().unwrap();
        let said = said(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(code), 1), "{said}");
        assert!(said.starts_with(start), "{said}");
        assert!(output.stdout.is_empty(), "{said}");
        assert_eq!(names(&self.folder(index)), [""; 0], "{said}");
        said
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the last line of the sender's results.
fn total(output: &Output) -> Value {
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(lines.lines().last().unwrap_or_default()).unwrap()
}

fn counts(total: &Value) -> [u64; 3] {
    ["receivers", "done", "failed"].map(|name| total[name].as_u64().unwrap())
}

/// The folder of one receiver does not exist: it fails before it joins. Another's disk is full. Each fails with one
/// line, and the third receives the file.
pub(crate) fn cannot_write() {
    let cast = Halfway::new("cast-full", 2, "");
    let with_out = |index: usize, out: &str| {
        fs::create_dir_all(cast.folder(index)).unwrap();
        let line = format!(
            "cast receive {SENDER}:7000 --nic packet:eth0 --ip 10.0.0.{}/24 {GROUP} --out {out}",
            10 + index
        );
        let mut command = command(&line);
        command.current_dir(cast.folder(index));
        cast.rack.hosts[1 + index].run(|| command.spawn()).unwrap().unwrap()
    };
    let nowhere = with_out(1, "missing/image.img");
    cast.assert_failed(1, nowhere, 1, "rxo: missing/image.img cannot be written: No such file");
    let (full, good) = (with_out(0, "/dev/full"), cast.receiver(1));
    cast.assert_failed(0, full, 1, "rxo: /dev/full cannot be written: No space left on device");
    cast.assert_has_file(1, good);
    let output = cast.sender.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(counts(&total(&output)), [2, 1, 1]);
}

/// The sender is killed half way. The receivers' probes get no answer, so they fail within 20 s
/// (docs/cast.md).
pub(crate) fn killed_sender() {
    let mut cast = Halfway::new("cast-killed", 2, "");
    let children = [0, 1].map(|index| cast.receiver(index));
    cast.wait_for_a_part();
    cast.sender.kill().unwrap();
    cast.sender.wait().unwrap();
    for (index, child) in children.into_iter().enumerate() {
        let said =
            cast.assert_failed(index, child, 3, "rxo: the cast of 10.0.0.1:7000 failed after ");
        let parts = [" of 15,000,000 bytes: ", "no file was written"];
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
}

/// On SIGINT and SIGTERM the sender reports its progress and ends; its receivers fail at once and keep no
/// file.
pub(crate) fn signalled_sender() {
    at_once(["INT", "TERM"], |name| {
        let cast = Halfway::new(&format!("cast-stop-{name}"), 2, "");
        let children = [0, 1].map(|index| cast.receiver(index));
        cast.wait_for_a_part();
        signal(name, cast.sender.id());
        let begun = Instant::now();
        for (index, child) in children.into_iter().enumerate() {
            cast.assert_failed(index, child, 3, "rxo: the cast of 10.0.0.1:7000 failed after ");
        }
        let output = cast.sender.wait_with_output().unwrap();
        assert!(begun.elapsed() < PROMPT, "{name}: {:?}", begun.elapsed());
        let said = said(&output);
        let last = "rxo: interrupted; the receivers that are not done have no file";
        assert_eq!((output.status.code(), said.lines().last()), (Some(1), Some(last)), "{said}");
        let total = total(&output);
        let bytes = total["bytes"].as_u64().unwrap();
        assert!(bytes > 0 && bytes < 15_000_000, "{total}");
        assert_eq!((&total["receivers"], &total["done"]), (&2.into(), &0.into()), "{total}");
    });
}

/// On SIGINT and SIGTERM a receiver ends without a file, and the other receiver gets the file.
pub(crate) fn signalled_receiver() {
    at_once(["INT", "TERM"], |name| {
        let cast = Halfway::new(&format!("cast-leave-{name}"), 2, "");
        let [leaves, stays] = [0, 1].map(|index| cast.receiver(index));
        cast.wait_for_a_part();
        signal(name, leaves.id());
        let begun = Instant::now();
        cast.assert_failed(0, leaves, 3, "rxo: the cast of 10.0.0.1:7000 failed after ");
        assert!(begun.elapsed() < PROMPT, "{name}: {:?}", begun.elapsed());
        cast.assert_has_file(1, stays);
        let output = cast.sender.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert_eq!(counts(&total(&output)), [2, 1, 1]);
    });
}

/// The only receiver ends half way. The sender's total has what was sent, not the length of the file.
pub(crate) fn only_receiver_gone() {
    let cast = Halfway::new("cast-gone", 1, "");
    let gone = cast.receiver(0);
    cast.wait_for_a_part();
    signal("INT", gone.id());
    cast.assert_failed(0, gone, 3, "rxo: the cast of 10.0.0.1:7000 failed after ");
    let output = cast.sender.wait_with_output().unwrap();
    let total = total(&output);
    let bytes = total["bytes"].as_u64().unwrap();
    assert!(bytes > 0 && bytes < 15_000_000, "{total}");
    assert_eq!((output.status.code(), counts(&total)), (Some(1), [1, 0, 1]), "{total}");
}

/// Without privileges each command fails with one line: the device, the missing permission, and a remedy.
pub(crate) fn without_privileges() {
    let (rack, scratch) = (Rack::new(1), Scratch::new("cast-weak"));
    let original = scratch.file("image.img");
    fs::write(&original, b"text").unwrap();
    let rxo = env!("CARGO_BIN_EXE_rxo");
    let host = format!("--nic packet:eth0 --ip {SENDER}/24 {GROUP}");
    let send = format!("cast send {} {host} --receivers 1", original.display());
    let receive = format!("cast receive 10.0.0.2:7000 {host}");
    for line in [send, receive] {
        let mut weak = Command::new("setpriv");
        weak.args(["--bounding-set=-all", "--inh-caps=-all", "--", rxo]);
        weak.args(line.split(' ')).stdin(Stdio::null());
        let output = rack.hosts[0].run(|| weak.output()).unwrap().unwrap();
        let said = said(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.contains("eth0") && said.contains("CAP_NET_RAW"), "{said}");
    }
}

/// The time limit for a prompt end on a busy machine; noticing a lost sender would take 20 s.
const PROMPT: Duration = Duration::from_secs(10);
