//! The socket of `--control`: its owner, its removal, and clients that pause.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use rxo_testbed::Lab;

use super::{RUN, asked, refusal, transfer};
use crate::process::{Rxo, run, spawn, wait_until};
use crate::report::Scratch;
use crate::traffic::totals;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

pub(super) fn file() {
    let (scratch, lab) = (Scratch::new("ctl-file"), Lab::through().unwrap());
    let socket = scratch.file("run.sock");
    let flags = format!("{RUN} --control {}", socket.display());
    for signal in ["TERM", "worker KILL", "keeper KILL"] {
        let (rxo, _) = Rxo::start(lab.host(), &flags);
        assert_eq!(mode(&socket), 0o600);
        match signal.split_once(' ') {
            None => rxo.signal(signal),
            Some(("worker", signal)) => rxo.signal_worker(signal),
            Some((_, signal)) => rxo.signal(signal),
        }
        rxo.end();
        wait_until("the socket is gone", || !socket.exists());
    }
    // The next run replaces the socket of a killed host. In a sandbox another process removes it.
    let host = format!(
        "sink --nic packet:wire0 --ip 10.77.0.2/24 --listen 7000 --json --no-sandbox --control {}",
        socket.display()
    );
    let answers = || UnixStream::connect(&socket).is_ok();
    let mut sink = spawn(lab.host(), &host);
    wait_until("the sink listens", answers);
    sink.kill().unwrap();
    sink.wait().unwrap();
    assert!(fs::symlink_metadata(&socket).unwrap().file_type().is_socket());
    let said = refusal(&socket, "counters");
    assert!(said.contains("nobody listens on") && said.contains("its process has ended"), "{said}");
    let (rxo, _) = Rxo::start(lab.host(), &flags);
    asked(&socket, "counters");
    totals(rxo);
    assert!(!socket.exists());
    // A file that is no socket must not be removed.
    fs::write(&socket, "a letter").unwrap();
    let output = run(lab.host(), &format!("run {flags}"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("there is a file that is no socket; choose another path"), "{said}");
    assert_eq!(fs::read(&socket).unwrap(), b"a letter");
    assert!(!lab.host().interface("rxo0").exists());
}

/// User id of nobody, who owns no files.
const NOBODY: u32 = 65_534;

/// Returns the path of a copy of the command that every user may run.
pub(crate) fn copied_command(scratch: &Scratch) -> PathBuf {
    let path = scratch.file("rxo");
    fs::copy(env!("CARGO_BIN_EXE_rxo"), &path).unwrap();
    path
}

pub(super) fn another_user() {
    let (scratch, lab) = (Scratch::new("ctl-user"), Lab::through().unwrap());
    let socket = scratch.file("run.sock");
    fs::set_permissions(socket.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    let rxo_of_all = copied_command(&scratch);
    let (rxo, _) = Rxo::start(lab.host(), &format!("{RUN} --control {}", socket.display()));
    let as_nobody = || {
        let mut command = std::process::Command::new(&rxo_of_all);
        command.args(["ctl".as_ref(), socket.as_os_str(), "counters".as_ref()]);
        command.uid(NOBODY).gid(NOBODY).output()
    };
    // A user namespace may have only one user; then this test can only check the file's mode.
    let Ok(output) = as_nobody() else {
        assert!(!has_other_users(), "nobody could have asked");
        assert_eq!(mode(&socket), 0o600);
        totals(rxo);
        return;
    };
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("this user may not use") && said.contains("ask as its owner"), "{said}");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    let output = as_nobody().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    totals(rxo);
}

/// Returns `true` if this user namespace maps the user nobody.
fn has_other_users() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap();
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().map(|it| it.parse().unwrap()).collect();
        (numbers[0]..numbers[0] + numbers[2]).contains(&NOBODY.into())
    })
}

/// Clients that send half a line, or read no answer, during a transfer.
pub(super) fn paused_client() {
    let (scratch, lab) = (Scratch::new("ctl-paused"), Lab::through().unwrap());
    let socket = scratch.file("run.sock");
    let (rxo, _) = Rxo::start(lab.host(), &format!("{RUN} --control {}", socket.display()));
    lab.attach_host("rxo0").unwrap();
    let moving = transfer(lab.peer(), lab.host(), &lab);
    let paused: Vec<_> = (0..8)
        .map(|number| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            let line: &[u8] = if number % 2 == 0 { b"{\"req" } else { b"{\"request\":\"help\"}\n" };
            stream.write_all(line).unwrap();
            stream
        })
        .collect();
    asked(&socket, "counters");
    let before = moving.received_bytes();
    wait_until("bytes arrive all the same", || moving.received_bytes() > before + 5_000_000);
    asked(&socket, "hold=100us");
    drop(paused);
    asked(&socket, "counters");
    assert!(moving.stop().unwrap().is_intact());
    totals(rxo);
}
