//! The remaining capabilities, privileges, system calls and user of each process, read from the kernel; and
//! commands that work as another user. The tests of `rxo-confine` try what a compromised process could still
//! do.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;

use rxo_testbed::{Lab, LabOptions, Namespace};
use serde_json::Value;

use crate::Test;
use crate::endpoint::connect;
use crate::guests::Socket;
use crate::owed::Place;
use crate::process::{Rxo, command, processes, run, signal, spawn, wait_until};
use crate::report::Scratch;
use crate::setup::SetUp;

pub(crate) const TESTS: &[Test] = &[
    ("a_run_and_what_waits_beside_it_have_given_up_everything_else", a_run),
    ("a_run_that_waits_for_its_nic_keeps_what_opens_it_again", a_run_that_waits),
    ("guests_and_a_card_are_served_without_any_privilege", guests_and_a_card),
    ("every_host_of_rxo_is_without_any_privilege", hosts),
    ("casts_are_without_any_privilege", casts),
    ("without_a_sandbox_everything_is_kept", without_a_sandbox),
    ("a_server_of_another_user_serves_what_that_user_may_read", another_user),
    ("a_user_that_cannot_be_is_said_in_one_line", no_user),
];

const HOST: &str = "--nic packet:wire0 --ip 10.77.0.2/24";
const NET_ADMIN: u64 = 1 << 12;
const NET_RAW: u64 = 1 << 13;
const DAC_OVERRIDE: u64 = 1 << 1;
/// `Seccomp` value of a filtered thread (`SECCOMP_MODE_FILTER`).
const FILTERED: &str = "2";

/// The text of a thread's `/proc/PID/task/TID/status`.
struct Thread(String);

impl Thread {
    /// Returns all threads of a process.
    fn all(process: u32) -> Vec<Self> {
        let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
        // A thread may end meanwhile.
        tasks
            .filter_map(|task| fs::read_to_string(task.path().join("status")).ok())
            .map(Self)
            .collect()
    }

    fn value(&self, key: &str) -> &str {
        let found = self.0.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        found.unwrap_or_else(|| panic!("no {key} in {}", self.0)).trim()
    }

    fn set(&self, key: &str) -> u64 {
        u64::from_str_radix(self.value(key), 16).unwrap()
    }
}

/// Checks that every thread of `process` has only `capabilities`, and can gain none.
fn is_confined(what: &str, process: u32, capabilities: u64) {
    let threads = Thread::all(process);
    assert!(!threads.is_empty(), "{what}");
    for thread in threads {
        for key in ["CapEff", "CapPrm"] {
            assert_eq!(thread.set(key), capabilities, "{what}: {key}");
        }
        // Root in these tests has CAP_SETPCAP; without it the sets could not be emptied, but nothing could be
        // gained either.
        for key in ["CapBnd", "CapInh", "CapAmb"] {
            assert_eq!(thread.set(key), 0, "{what}: {key}");
        }
        assert_eq!(thread.value("NoNewPrivs"), "1", "{what}");
        assert_eq!(thread.value("Seccomp"), FILTERED, "{what}");
    }
}

/// Waits until all threads of the process are confined, and checks the remaining privileges of each.
fn becomes_confined(what: &str, process: u32) {
    let is_so = || {
        let threads = Thread::all(process);
        let is_filtered = |thread: &Thread| thread.value("Seccomp") == FILTERED;
        // A host has a second thread, and the main thread is confined last.
        threads.len() > 1 && threads.iter().all(is_filtered)
    };
    wait_until(what, is_so);
    is_confined(what, process, 0);
}

fn end(rxo: Rxo) -> String {
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    said
}

/// Starts a command with its record in `place`, even if this user may not write to `/run`: without a record
/// the worker would keep the capabilities to restore.
fn start(namespace: &Namespace, place: &Place, line: &str) -> (Rxo, Value) {
    let mut rxo = command(line);
    rxo.env("RUNTIME_DIRECTORY", place.path());
    let child = namespace.run(|| rxo.spawn()).unwrap().unwrap();
    Rxo::from_child(child).unwrap()
}

fn a_run() {
    let place = Place::new();
    let scratch = Scratch::new("privileges");
    let lab = SetUp::TakeOver.lab(LabOptions::default());
    let line = format!(
        "run --json {} --control {} --tap {}",
        SetUp::TakeOver.flags(),
        scratch.file("run.sock").display(),
        scratch.file("run.pcapng").display()
    );
    let (rxo, first) = start(lab.host(), &place, &line);
    let said = first["sandbox"].as_str().unwrap();
    assert!(said.starts_with("no capabilities, ") && said.ends_with(" system calls"), "{said}");
    is_confined("worker", rxo.worker(), 0);
    is_confined("keeper", rxo.id(), NET_ADMIN | DAC_OVERRIDE);
    is_confined("restorer", rxo.restorer(), NET_ADMIN | DAC_OVERRIDE);
    assert_eq!(end(rxo), "");
}

fn a_run_that_waits() {
    let lab = SetUp::TakeOver.lab(LabOptions::default());
    let line = format!("run --json {} --wait-for-nic", SetUp::TakeOver.flags());
    let place = Place::new();
    let (rxo, first) = start(lab.host(), &place, &line);
    let said = first["sandbox"].as_str().unwrap();
    assert!(said.starts_with("capabilities NET_ADMIN NET_RAW, "), "{said}");
    is_confined("worker", rxo.worker(), NET_ADMIN | NET_RAW);
    assert_eq!(end(rxo), "");
}

fn guests_and_a_card() {
    let (lab, socket) = (Lab::through().unwrap(), Socket::new("privileges"));
    let place = Place::new();
    let line = format!("guest --json --nic packet:wire0 --vhost web={},learn=yes", socket.path());
    let (rxo, _) = start(lab.host(), &place, &line);
    is_confined("rxo guest", rxo.worker(), 0);
    end(rxo);
    assert!(!Path::new(&socket.path().to_string()).exists(), "the keeper has removed it");
    let (card, _) = start(lab.host(), &place, &format!("card --json {}", socket.card()));
    is_confined("rxo card", card.worker(), 0);
    end(card);
}

/// Starts a command, checks its process, and ends it.
fn looked_at(namespace: &Namespace, line: &str) {
    let mut child = spawn(namespace, line);
    becomes_confined(line, child.id());
    interrupt(&mut child);
}

fn interrupt(child: &mut Child) {
    signal("INT", child.id());
    child.wait().unwrap();
}

fn hosts() {
    let (lab, scratch) = (Lab::through().unwrap(), Scratch::new("privileges-hosts"));
    let control = scratch.file("host.sock");
    let folder = control.parent().unwrap().display();
    for line in [
        format!("serve {folder} {HOST} --control {}", control.display()),
        format!("sink {HOST} --listen 7000 --control {}", control.display()),
        format!("source {HOST} 10.77.0.1:7000 --time 60s"),
        format!("cat {HOST} --listen 7000"),
    ] {
        looked_at(lab.host(), &line);
        // A separate process removes the socket, because the command has no permission.
        assert!(!control.exists(), "{line}");
    }
}

fn casts() {
    let (lab, scratch) = (Lab::through().unwrap(), Scratch::new("privileges-casts"));
    let file = scratch.file("image");
    fs::write(&file, "image").unwrap();
    let group = "--group 232.1.1.1:7000";
    let send = format!("cast send {} {HOST} {group} --receivers 1", file.display());
    looked_at(lab.host(), &send);
    looked_at(lab.host(), &format!("cast receive 10.77.0.1:7000 {HOST} {group}"));
    let join = format!("cast join 10.77.0.1:7000 {group} --nic packet:wire0 --host tap:cast0");
    looked_at(lab.host(), &join);
}

fn without_a_sandbox() {
    let lab = Lab::through().unwrap();
    let (rxo, first) = Rxo::start(lab.host(), "--nic packet:wire0 --host tap:rxo0 --no-sandbox");
    assert_eq!(first["sandbox"], "off");
    let own = Thread::all(std::process::id()).remove(0);
    for process in [rxo.id(), rxo.worker(), rxo.restorer()] {
        for thread in Thread::all(process) {
            for key in ["CapEff", "CapBnd", "NoNewPrivs", "Seccomp"] {
                assert_eq!(thread.value(key), own.value(key), "{key}");
            }
        }
    }
    end(rxo);
}

/// User id of nobody, who owns no files, if this user namespace maps it.
pub(crate) const NOBODY: u32 = 65_534;

pub(crate) fn has_nobody() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap();
    let is_mapped = map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().map(|it| it.parse().unwrap()).collect();
        (numbers[0]..numbers[0] + numbers[2]).contains(&NOBODY.into())
    });
    if !is_mapped {
        eprintln!("not run: this user namespace has one user only");
    }
    is_mapped
}

fn get(lab: &Lab, path: &str) -> String {
    let mut stream: TcpStream = connect(lab.peer(), "10.77.0.2:80");
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// With `--user nobody` the server may read only the file that is readable by all. Root owns both files, and
/// the folder with the control socket.
fn another_user() {
    let (lab, scratch) = (Lab::through().unwrap(), Scratch::new("privileges-user"));
    let control = scratch.file("host.sock");
    let folder = scratch.file("served");
    fs::create_dir(&folder).unwrap();
    for (name, mode) in [("open", 0o644), ("closed", 0o600)] {
        fs::write(folder.join(name), name).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let as_root = format!("serve {} {HOST} --control {}", folder.display(), control.display());
    let mut server = spawn(lab.host(), &as_root);
    assert!(get(&lab, "/closed").ends_with("closed"));
    interrupt(&mut server);
    if !has_nobody() {
        return;
    }
    let mut server = spawn(lab.host(), &format!("{as_root} --user {NOBODY}:{NOBODY}"));
    becomes_confined("of nobody", server.id());
    for thread in Thread::all(server.id()) {
        let nobody = format!("{NOBODY}\t{NOBODY}\t{NOBODY}\t{NOBODY}");
        assert_eq!((thread.value("Uid"), thread.value("Gid")), (&*nobody, &*nobody));
        assert_eq!(thread.value("Groups"), NOBODY.to_string());
    }
    assert!(get(&lab, "/open").ends_with("open"));
    let refused = get(&lab, "/closed");
    assert!(!refused.contains("200 OK") && !refused.ends_with("closed"), "{refused}");
    assert!(control.exists());
    interrupt(&mut server);
    assert!(!control.exists(), "nobody could not have removed it");
}

fn no_user() {
    let lab = Lab::through().unwrap();
    let output = run(lab.host(), &format!("sink {HOST} --listen 7000 --user no-such"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("--user no-such: the system knows no such user"), "{said}");
    let network = lab.host().run(|| fs::read_link("/proc/thread-self/ns/net")).unwrap().unwrap();
    let is_of_lab =
        |process: &u32| is_remover(*process) && network_of(*process).as_ref() == Some(&network);
    let left: Vec<u32> = processes().filter(is_of_lab).collect();
    assert!(left.is_empty(), "what removes sockets ends with its command: {left:?}");
}

fn is_remover(process: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{process}/comm"));
    name.is_ok_and(|name| name.trim() == "rxo-remover")
}

fn network_of(process: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/net")).ok()
}
