//! `packaging/rxo@.service` under a real systemd, the first process of its own container: the unit starts,
//! reloads its file, and however its processes end, the interface is given back and the service restarts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::Test;
use crate::process::wait_until;
use crate::report::Scratch;

/// Tests that need systemd.
pub(crate) const LONG_TESTS: &[Test] = &[("the_unit_lives_under_systemd", lives)];

const SERVICE: &str = "rxo@eth1";
const FILE: &str = "hold = \"auto\"\n";

/// A container with its own systemd. Dropping it ends all its processes.
struct System {
    child: Child,
    first: u32,
    cgroup: PathBuf,
    _scratch: Scratch,
}

impl System {
    fn boot() -> Self {
        let scratch = Scratch::new("systemd");
        let folder = scratch.file("files");
        fs::create_dir(&folder).unwrap();
        // Without its own cgroup, systemd would clean up the machine's.
        let cgroup = cgroups().join(format!("rxo-test-{}", std::process::id()));
        fs::create_dir(&cgroup).unwrap();
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ > $0/cgroup.procs && exec \"$@\""]).arg(&cgroup);
        shell.args(["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"]);
        shell.args(["--fork", "--kill-child", "sh"]);
        shell.arg(tests.join("tests/live/unit/container.sh")).arg(&folder);
        shell.arg(env!("CARGO_BIN_EXE_rxo")).arg(tests.join("../../packaging/rxo@.service"));
        let child = shell.stdin(Stdio::null()).spawn().expect("sh and unshare");
        let number = child.id();
        let children = || fs::read_to_string(format!("/proc/{number}/task/{number}/children"));
        wait_until("the system has a first process", || children().is_ok_and(|it| !it.is_empty()));
        let first = children().unwrap().trim().parse().unwrap();
        let system = Self { child, first, cgroup, _scratch: scratch };
        wait_until("systemd has begun", || {
            system.say("systemctl is-system-running").starts_with("running")
        });
        system
    }

    /// Runs `line` in a shell of the container, and returns its standard output.
    fn say(&self, line: &str) -> String {
        let mut enter = Command::new("nsenter");
        enter.args(["--target", &self.first.to_string(), "--all", "sh", "-c", line]);
        String::from_utf8(enter.output().unwrap().stdout).unwrap()
    }

    /// Runs `line` in the container, which must succeed.
    fn run(&self, line: &str) {
        let said = self.say(&format!("({line}) 2>&1; echo exit $?"));
        assert!(said.ends_with("exit 0\n"), "{line}: {said}{}", self.journal());
    }

    fn journal(&self) -> String {
        self.say("journalctl --no-pager -u 'rxo@*' 2>&1 | tail -30")
    }

    /// Returns the process id of the keeper, the service's main process.
    fn keeper(&self) -> String {
        self.say(&format!("systemctl show -p MainPID --value {SERVICE}"))
    }

    /// Waits until the service is active with a keeper other than `before`, and checks that the TAP has the
    /// nic's configuration.
    fn works(&self, before: &str) {
        wait_until("the service works", || {
            self.say(&format!("systemctl is-active {SERVICE}")) == "active\n"
                && self.keeper() != before
        });
        let eth1 = self.say("ip -br address show dev eth1");
        assert!(eth1.contains("10.9.0.1/24"), "{eth1}");
        assert!(self.say("ip -br link").contains("eth1-nic"));
    }
}

impl Drop for System {
    fn drop(&mut self) {
        _ = Command::new("kill").args(["-9", &self.first.to_string()]).status();
        _ = self.child.wait();
        remove(&self.cgroup);
    }
}

/// Returns the folder of the version 2 cgroups, which may be mounted beside version 1.
fn cgroups() -> PathBuf {
    let folders = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
    let is_mounted = |folder: &PathBuf| folder.join("cgroup.procs").exists();
    folders.into_iter().find(is_mounted).expect("cgroups of version 2")
}

/// Removes a cgroup and its children, once their processes have ended.
fn remove(cgroup: &Path) {
    let inner = fs::read_dir(cgroup).into_iter().flatten().flatten();
    let folders = inner.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.for_each(|entry| remove(&entry.path()));
    wait_until("a cgroup has no process", || {
        let processes = fs::read_to_string(cgroup.join("cgroup.procs"));
        processes.is_ok_and(|processes| processes.is_empty())
    });
    fs::remove_dir(cgroup).unwrap();
}

fn lives() {
    let system = System::boot();
    system.run("systemd-analyze verify /etc/systemd/system/rxo@.service");
    system.run(&format!("systemctl start {SERVICE}"));
    system.works("");
    reads_its_file_again(&system);
    // Only the thread that carries frames has priority over other processes.
    let nice = system.say("for n in $(pgrep rxo); do ps -L -o ni= -p $n; done");
    assert_eq!(nice.matches("-20").count(), 1, "{nice}");
    for (what, kill) in [
        ("all its processes are killed", "kill -9 $(pgrep rxo)"),
        // Then the service manager gets no messages.
        ("its keeper is stopped", "kill -STOP $(systemctl show -p MainPID --value rxo@eth1)"),
    ] {
        let before = system.keeper();
        eprintln!("{what}");
        system.run(kill);
        system.works(&before);
    }

    system.run(&format!("systemctl stop {SERVICE}"));
    let links = system.say("ip -br address");
    assert!(links.contains("10.9.0.1/24") && !links.contains("eth1-nic"), "{links}");
    assert!(!system.say("pgrep rxo").contains(char::is_numeric));
    assert!(!system.say(&format!("systemctl is-failed {SERVICE}")).contains("failed"));
}

fn reads_its_file_again(system: &System) {
    let before = system.keeper();
    let write = |text: &str| system.run(&format!("printf '%s' '{text}' > /etc/rxo/eth1.toml"));
    write(FILE);
    system.run("echo 'RXO_OPTIONS=--config /etc/rxo/eth1.toml --nice -20' > /etc/rxo/eth1.conf");
    system.run(&format!("systemctl restart {SERVICE}"));
    system.works(&before);
    write("hold = \"end-of-poll\"\n");
    let keeper = system.keeper();
    system.run(&format!("systemctl reload {SERVICE}"));
    assert_eq!(system.keeper(), keeper);
    assert!(system.journal().contains("was read again; changed: hold"), "{}", system.journal());
}
