//! Tests of the command that need no privilege and no network.
#![allow(clippy::unwrap_used, reason = "the helpers of tests, too")]

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

fn rxo(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxo"));
    command.args(line.split_whitespace()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Checks that the command exits with `code` and prints one line that contains all `parts`.
fn fails(line: &str, code: i32, parts: &[&str]) {
    let output = rxo(line);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{line}: {said}");
    assert_eq!(said.lines().count(), 1, "{line}: {said}");
    assert!(said.starts_with("rxo: ") && said.ends_with('\n'), "{said}");
    assert!(output.stdout.is_empty(), "{line}: {}", stdout(&output));
    for part in parts {
        assert!(said.contains(part), "{line}: '{part}' is not in: {said}");
    }
}

#[test]
fn what_is_typed_wrong_is_one_line_and_code_2() {
    let rows: [(&str, &[&str]); 29] = [
        ("", &["a command is missing", "`rxo --help`"]),
        ("cast", &["a command is missing", "`rxo cast --help`"]),
        ("analyze x --html /dev/null", &["--html /dev/null", "no plain file"]),
        ("walk", &["walk", "rxo --help"]),
        ("run --nic packet:lo", &["--host"]),
        ("run --nic packet:lo --host tap:r0 --fast", &["--fast"]),
        ("run --nic packet:lo --host tap:r0 --checksum maybe", &["maybe", "trust", "verify"]),
        ("run --nic xdp:lo --host tap:r0 --upgrade u.sock", &["packet:IFNAME", "--nic xdp:lo"]),
        (
            "run --nic packet:lo --host virtio:/v --upgrade u.sock",
            &["tap:NAME", "--host virtio:/v"],
        ),
        ("run --nic packet:lo --host tap:r0 --policy lro", &["--policy lro", "linux-gro"]),
        ("run --nic packet:lo --host tap:r0 --set flows=0", &["--set flows=0", "1 to 4096"]),
        ("run --nic packet:lo --host tap:r0 --set flows", &["--set flows", "key=value"]),
        ("run --nic packet:lo --host tap:r0 --hold 1h", &["--hold 1h", "end-of-poll"]),
        ("run --nic packet:lo --host tap:r0 --stats often", &["--stats often", "100ms"]),
        ("run --nic lo --host tap:r0", &["--nic", "`lo`", "packet:IFNAME"]),
        ("run --nic packet:lo --host packet:lo", &["--nic packet:lo", "one interface"]),
        ("demo --connections 401", &["--connections 401", "1 to 400"]),
        ("demo --connections many", &["many"]),
        ("cat --nic tap:r0 10.0.0.1:7", &["--ip"]),
        ("cat --nic tap:r0 --ip 192.0.2.2 192.0.2.1:7", &["192.0.2.2", "write 192.0.2.2/24"]),
        ("cat --nic tap:r0 --ip 192.0.2.2/24", &["nobody to talk to", "--listen PORT"]),
        ("cat --nic tap:r0 --ip 192.0.2.2/24 192.0.2.1:7 --listen 7", &["leave one out"]),
        ("cat --nic tap:r0 --ip 192.0.2.2/24 [fd00::1]:7", &["no --ip is of IPv6"]),
        ("cat --nic tap:r0 --ip 192.0.2.2/24 --listen 0", &["--listen 0", "1 to 65535"]),
        ("cat --nic tap:r0 --ip 192.0.2.2/24 --listen 7 --mac 1", &["--mac 1", "six bytes"]),
        ("sink --nic tap:r0 --ip 127.0.0.1/8 --listen 7", &["127.0.0.1", "the system has it"]),
        (
            "sink --nic tap:r0 --ip 192.0.2.2/24 --listen 7 --connections 10001",
            &["--connections 10001", "choose 1 to 10000"],
        ),
        ("source --nic tap:r0 --ip 192.0.2.2/24 192.0.2.1:7 --rr 0", &["--rr 0", "1 to 65536"]),
        ("source --nic tap:r0 --ip 192.0.2.2/24 192.0.2.1:7 --bytes 1T", &["--bytes 1T", "10M"]),
    ];
    for (line, parts) in rows {
        fails(line, 2, parts);
    }
}

/// Each invalid argument of `rxo cast` fails with one line: the option, its value, and a valid form.
#[test]
fn a_cast_that_cannot_be_is_one_line_and_code_2() {
    let host = "--nic packet:lo --ip 192.0.2.1/24";
    let group = "--group 232.1.1.1:7000";
    let rows: [(String, &[&str]); 6] = [
        (
            format!("cast send x {host} --receivers 1 --group 192.0.2.9:7000"),
            &["--group 192.0.2.9:7000", "is no group"],
        ),
        (
            format!("cast receive 192.0.2.9:7000 {host} --group 232.1.1.1"),
            &["--group 232.1.1.1", "such as 232.1.1.1:7000"],
        ),
        (
            format!("cast receive 192.0.2.9:7000 {host} --group [ff3e::8000:1]:7000"),
            &["--group [ff3e::8000:1]:7000", "cannot send"],
        ),
        (
            format!("cast send x {host} {group} --receivers 0"),
            &["--receivers 0", "choose 1 to 65536"],
        ),
        (
            format!("cast send x {host} {group} --receivers 1 --late catch-up:soon"),
            &["--late catch-up:soon", "catch-up:600s"],
        ),
        (
            format!("cast send x {host} {group} --receivers 1 --late from-now:5s"),
            &["--late from-now:5s", "--raw"],
        ),
    ];
    for (line, parts) in rows {
        fails(&line, 2, parts);
    }
}

#[test]
fn an_interface_that_does_not_exist_is_named() {
    for dry in ["", "--dry-run"] {
        fails(
            &format!("run --nic packet:nowhere0 --host tap:rxo0 {dry}"),
            2,
            &["packet:nowhere0", "no interface", "ip link"],
        );
    }
}

#[test]
fn a_policy_that_the_sink_cannot_carry_is_refused() {
    fails(
        "run --nic packet:lo --host tap:rxo0 --policy remember --dry-run",
        2,
        &["--host tap:rxo0: policy remember does not fit the host's device", "linux-gro"],
    );
}

#[test]
fn devices_that_carry_different_things_are_refused() {
    fails(
        "run --nic packet:lo --host tun:rxo0 --dry-run",
        2,
        &["packet:lo carries Ethernet frames", "tun:rxo0 carries IP packets"],
    );
}

/// Runs a copy of the command; as root, under another user, because the build folder may be readable by root
/// only.
fn unprivileged(name: &str, line: &str) -> Output {
    let name = format!("rxo-{name}-{}", std::process::id());
    let copy = std::env::temp_dir().join(name);
    fs::copy(env!("CARGO_BIN_EXE_rxo"), &copy).unwrap();
    let mut command = Command::new(&copy);
    command.args(line.split_whitespace());
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let begun = Instant::now();
    let output = loop {
        match command.output() {
            // A child that another test has just forked may have the copy open for writing until its exec.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                assert!(begun.elapsed() < Duration::from_secs(60), "{error}");
                thread::sleep(Duration::from_millis(10));
            }
            output => break output,
        }
    };
    fs::remove_file(&copy).unwrap();
    output.unwrap()
}

#[test]
fn without_privilege_it_says_how_to_get_it() {
    let output = unprivileged("tap", "run --nic tap:rxo-none1 --host tap:rxo-none0");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("tap:rxo-none1") && said.contains("run as root"), "{said}");
}

#[test]
fn a_folder_that_may_not_be_written_is_refused_before_the_work() {
    for line in ["analyze x --html /etc/r.html", "calibrate --save /etc/r.json"] {
        let output = unprivileged("folder", line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("may not write in /etc; name another folder"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

const NOBODY: u32 = 65_534;

#[test]
fn a_dry_run_says_the_configuration_in_force() {
    let line = "run --nic tap:rxo-dry1 --host tap:rxo-dry0 --dry-run --set max_segments=7 --hold 50us \
                --ack-split 2";
    let output = rxo(line);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for part in
        ["tap:rxo-dry1", "tap:rxo-dry0", "linux-gro", "max_segments", "50us", "verify", "one for 2"]
    {
        assert!(text.contains(part), "'{part}' is not in:\n{text}");
    }
    let json: Value = serde_json::from_str(&stdout(&rxo(&format!("{line} --json")))).unwrap();
    assert_eq!(json["policy"], "linux-gro");
    assert_eq!(json["settings"]["max_segments"], 7);
    assert_eq!(json["settings"]["hold"], "50us");
    assert_eq!(json["checksum"], "verify");
    assert_eq!(json["ack_split"], 2);
    let off = stdout(&rxo("run --nic tap:rxo-dry1 --host tap:rxo-dry0 --dry-run --json"));
    assert_eq!(serde_json::from_str::<Value>(&off).unwrap()["ack_split"], Value::Null);
}

#[test]
fn the_policies_are_listed_for_people_and_for_machines() {
    let text = stdout(&rxo("policies"));
    let json: Value = serde_json::from_str(&stdout(&rxo("policies --json"))).unwrap();
    let policies = json["policies"].as_array().unwrap();
    assert_eq!(policies.len(), 11);
    for policy in policies {
        assert!(text.contains(policy["name"].as_str().unwrap()), "{policy}");
        assert!(policy["settings"]["max_bytes"].is_u64(), "{policy}");
    }
    assert_eq!(policies.iter().filter(|policy| policy["default"] == true).count(), 1);
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rxo"))
        .arg("policies")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
}

#[test]
fn help_and_version_are_no_failure() {
    for line in ["--help", "--version", "run --help", "demo --help", "policies --help"] {
        let output = rxo(line);
        assert!(output.status.success() && !output.stdout.is_empty(), "{line}");
    }
}
