//! The file that records what to restore on the nic: it is written during a run, and used for the
//! restoration, whatever ends the run.

use std::fs;
use std::path::{Path, PathBuf};

use rxo_testbed::{Lab, LabOptions};

use crate::Test;
use crate::process::{Rxo, command, signal, spawn, wait_until};
use crate::report::Scratch;
use crate::setup::SetUp;
use crate::takeover::{PARKED, becomes, facts, shell, sorted};

pub(crate) const TESTS: &[Test] = &[
    ("a_nic_that_came_back_is_given_back_after_both_are_killed", a_nic_that_came_back),
    ("what_an_earlier_boot_owed_is_not_given", an_earlier_boot),
    ("a_run_that_cannot_be_noted_says_so", a_run_without_a_file),
    ("a_capture_that_cannot_be_written_changes_nothing", a_capture_that_cannot_be),
    ("a_run_that_waits_for_another_sees_what_that_gave_back", a_run_after_another),
    ("an_ipv6_route_by_two_nics_loses_none", an_ipv6_route_by_two),
    ("a_device_set_to_big_tcp_is_said", big_tcp),
];

/// A directory for the files that record what to restore.
pub(crate) struct Place {
    _scratch: Scratch,
    directory: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new("owed");
        Self { directory: scratch.file("rxo"), _scratch: scratch }
    }

    /// Starts `rxo run --take-over` with `flags`.
    pub(crate) fn start(&self, lab: &Lab, flags: &str) -> Rxo {
        let variables: [(&str, &Path); 1] = [("RUNTIME_DIRECTORY", &self.directory)];
        Rxo::start_with(lab.host(), &format!("{} {flags}", SetUp::TakeOver.flags()), &variables).0
    }

    pub(crate) fn file_count(&self) -> usize {
        // The directory is not created if nothing was ever recorded.
        fs::read_dir(&self.directory).map_or(0, Iterator::count)
    }

    /// Returns the number of records, without a new one that is being written.
    pub(crate) fn record_count(&self) -> usize {
        let is_new = |path: &Path| path.extension().is_some_and(|end| end == "new");
        let entries = fs::read_dir(&self.directory).unwrap();
        entries.filter(|entry| !is_new(&entry.as_ref().unwrap().path())).count()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn file(&self) -> PathBuf {
        fs::read_dir(&self.directory).unwrap().next().unwrap().unwrap().path()
    }

    /// Runs `rxo run --restore` and returns what it prints on standard error.
    pub(crate) fn restore(&self, lab: &Lab) -> String {
        let mut restore = command("run --nic packet:eth1 --restore");
        restore.env("RUNTIME_DIRECTORY", &self.directory);
        let output = lab.host().run(|| restore.output()).unwrap().unwrap();
        String::from_utf8(output.stderr).unwrap()
    }
}

/// Kills all processes of a run at once, and waits until its TAP is gone.
pub(crate) fn kill_both(lab: &Lab, rxo: Rxo) {
    kill_all(rxo);
    wait_until("the TAP is gone", || !lab.host().interface("rxo0").exists());
}

/// Kills all processes of a run at once.
pub(crate) fn kill_all(rxo: Rxo) {
    let worker = rxo.worker();
    signal("KILL", rxo.restorer());
    // Stopped first, so that it does not notice the worker's end.
    rxo.signal("STOP");
    rxo.signal_worker("KILL");
    rxo.signal("KILL");
    rxo.end();
    wait_until("all are gone", || !Path::new(&format!("/proc/{worker}")).exists());
}

fn a_nic_that_came_back() {
    let (lab, place) = (SetUp::TakeOver.lab(LabOptions::default()), Place::new());
    let have = || {
        let addresses = "ip -o address show dev eth1 | cut -d' ' -f3- | grep -v fe80";
        let routes = "ip route show default; ip -6 route show default";
        [addresses, routes].map(|command| sorted(&lab, command))
    };
    let before = have();
    let rxo = place.start(&lab, "--wait-for-nic");
    let first = place.file();
    lab.host().interface(PARKED).delete().unwrap();
    wait_until("the name is free", || !lab.host().interface(Lab::NIC).exists());
    lab.connect_again(Lab::NIC).unwrap();
    let is_noted = || {
        fs::read_dir(&place.directory)
            .unwrap()
            .flatten()
            .any(|entry| entry.path() != first && entry.path().extension().is_none())
    };
    wait_until("what the new nic is owed is noted", is_noted);
    let switch = "net.ipv6.conf.eth1-nic.disable_ipv6";
    let is_silent = || lab.host().sysctl(switch).is_ok_and(|value| value == "1");
    wait_until("the run goes on", is_silent);
    kill_both(&lab, rxo);
    assert!(!sorted(&lab, "ip -o address show").contains("10.77.0.2"));
    let said = place.restore(&lab);
    assert!(said.contains("packet:eth1 has back what a run that was killed"), "{said}");
    assert_eq!(have(), before);
    assert_eq!(place.file_count(), 0);
}

fn an_earlier_boot() {
    let (lab, place) = (SetUp::TakeOver.lab(LabOptions::default()), Place::new());
    kill_both(&lab, place.start(&lab, ""));
    let file = place.file();
    let text = fs::read_to_string(&file).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    fs::write(&file, resealed(&text.replace(boot.trim(), "another"))).unwrap();
    // After a reboot the nic would have its own name again.
    lab.host().interface(PARKED).rename(Lab::NIC).unwrap();
    place.restore(&lab);
    assert!(!sorted(&lab, "ip -o address show").contains("10.77.0.2"));
    assert!(!file.exists());
}

/// Returns a record whose lines were changed, with a matching checksum.
fn resealed(record: &str) -> String {
    let (lines, _) = record.rsplit_once("checksum ").unwrap();
    let checksum = lines.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{lines}checksum {checksum:016x}\n")
}

fn a_run_without_a_file() {
    let (lab, place) = (SetUp::TakeOver.lab(LabOptions::default()), Place::new());
    let before = facts(&lab);
    fs::write(&place.directory, "no directory").unwrap();
    let rxo = place.start(&lab, "");
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("cannot note what the nic is owed"), "{said}");
    becomes(&lab, &before, "at the end");
}

fn a_capture_that_cannot_be() {
    let (lab, place) = (SetUp::TakeOver.lab(LabOptions::default()), Place::new());
    let flags = SetUp::TakeOver.flags();
    let mut rxo = command(&format!("run {flags} --tap /nowhere/capture"));
    rxo.env("RUNTIME_DIRECTORY", &place.directory);
    let output = lab.host().run(|| rxo.output()).unwrap().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--tap /nowhere/capture: cannot be written"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(place.file_count(), 0, "something was changed");
}

/// The second run examines the nic only after the first has given it back.
fn a_run_after_another() {
    let lab = SetUp::TakeOver.lab(LabOptions::default());
    // No record of the first run: this test is about the second run's own observations.
    let place = Place::new();
    fs::write(&place.directory, "no directory").unwrap();
    let before = facts(&lab);
    for attempt in 0.. {
        let first = place.start(&lab, "");
        let line = format!("run --json {}", SetUp::TakeOver.flags().replace("rxo0", "rxo1"));
        let second = spawn(lab.host(), &line);
        // The second run waits at most a second for the first.
        std::thread::sleep(std::time::Duration::from_millis(300));
        first.signal("TERM");
        assert_eq!(first.end().0, Some(0));
        let second = Rxo::from_child(second);
        match second {
            Some((rxo, configuration)) => {
                let moved = configuration["take_over"]["addresses"].to_string();
                assert!(moved.contains("10.77.0.2/24"), "{configuration}");
                rxo.signal("TERM");
                let (code, _, said) = rxo.end();
                assert_eq!(code, Some(0), "{said}");
                break;
            }
            // On a busy machine the first run can take longer than that.
            None => assert!(attempt < 20, "never waited for"),
        }
    }
    becomes(&lab, &before, "at the end");
}

/// The kernel stores each next hop as a separate route, and those through another nic already exist.
fn an_ipv6_route_by_two() {
    let lab = SetUp::TakeOver.lab(LabOptions::default());
    shell(
        &lab,
        &[
            "ip link add other0 type veth peer name other1",
            "ip link set other1 up",
            "ip link set other0 up",
            "ip address add fd99::9/64 dev other0 nodad",
            "ip -6 route add 2001:db8:8::/48 nexthop via fd77::1 dev eth1 nexthop via fd99::1 dev other0",
        ],
    );
    let ways = || {
        let text = sorted(&lab, "ip -6 route show 2001:db8:8::/48");
        let mut ways: Vec<String> = text
            .split_whitespace()
            .filter(|word| ["eth1", "rxo0", "other0"].contains(word))
            .map(str::to_owned)
            .collect();
        ways.sort();
        ways
    };
    assert_eq!(ways(), ["eth1", "other0"]);
    let (rxo, _) = Rxo::start(lab.host(), SetUp::TakeOver.flags());
    assert!(lab.host().interface(PARKED).exists());
    assert_eq!(ways(), ["eth1", "other0"], "by the TAP, which has the name");
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(ways(), ["eth1", "other0"]);
}

fn big_tcp() {
    // rxo writes at most 64 KiB to a TAP, but the kernel may coalesce more there.
    let devices = [
        ("eth1", "gso_max_size 130000 gro_max_size 130000", true),
        ("rxo0", "gro_max_size 130000", true),
        ("other0", "gso_max_size 130000", false),
    ];
    for (device, sizes, is_said) in devices {
        let lab = SetUp::TakeOver.lab(LabOptions::default());
        shell(
            &lab,
            &[
                "ip tuntap add dev rxo0 mode tap",
                "ip link add other0 type veth peer name other1",
                &format!("ip link set dev {device} {sizes}"),
            ],
        );
        let (rxo, _) = Rxo::start(lab.host(), SetUp::TakeOver.flags());
        rxo.signal("TERM");
        let (code, _, said) = rxo.end();
        assert_eq!(code, Some(0), "{said}");
        let notice = format!(":{device} is set to packets of up to 130000 bytes (BIG TCP)");
        assert_eq!(said.matches(&notice).count(), usize::from(is_said), "{device}: {said}");
        assert_eq!(said.matches("BIG TCP").count(), usize::from(is_said), "{device}: {said}");
    }
    a_tun_is_named_as_one();
}

fn a_tun_is_named_as_one() {
    let lab = SetUp::TakeOver.lab(LabOptions::default());
    shell(&lab, &["ip tuntap add dev rxo0 mode tun", "ip link set dev rxo0 gro_max_size 130000"]);
    let (rxo, _) = Rxo::start(lab.host(), "--nic tun:nic0 --host tun:rxo0");
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("tun:rxo0 is set to packets of up to 130000 bytes"), "{said}");
}
