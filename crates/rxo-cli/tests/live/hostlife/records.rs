//! Records of what to restore after a run was killed.

use std::fs;
use std::process::{Command, Stdio};

use super::{lab, state};
use crate::Test;
use crate::owed::{Place, kill_all, kill_both};
use crate::process::{Rxo, command, wait_until};
use crate::setup::SetUp;
use crate::takeover::{PARKED, shell, sorted};

pub(crate) const TESTS: &[Test] = &[
    ("hostlife_half_a_record_is_kept_and_named", half_a_record),
    ("hostlife_records_of_networks_that_are_gone_are_removed", of_networks_that_are_gone),
    ("hostlife_a_tap_that_outlives_a_killed_run_gives_the_names_back", a_tap_that_stays),
    ("hostlife_a_full_disk_leaves_no_half_record", a_full_disk),
    ("hostlife_a_dry_run_names_what_a_killed_run_left", a_dry_run),
];

fn half_a_record() {
    for by in ["--restore", "the next run"] {
        let (lab, place) = (lab(), Place::new());
        kill_both(&lab, place.start(&lab, ""));
        let file = place.file();
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, &text[..text.len() / 2]).unwrap();
        fs::write(file.with_extension("new"), "unfinished").unwrap();
        // Nothing shows any more which name the nic had.
        shell(&lab, &[&format!("ip link set {PARKED} name eth1")]);
        let said = if by == "--restore" {
            place.restore(&lab)
        } else {
            shell(&lab, &["ip link set eth1 up"]);
            let rxo = place.start(&lab, "");
            rxo.signal("TERM");
            let (code, _, said) = rxo.end();
            assert_eq!(code, Some(0), "{said}");
            said
        };
        let kept = file.with_extension("damaged");
        assert!(
            said.contains("is damaged") && said.contains(kept.to_str().unwrap()),
            "{by}: {said}"
        );
        assert_eq!(fs::read_to_string(&kept).unwrap(), text[..text.len() / 2], "{by}");
        assert_eq!(place.file_count(), 1, "{by}: only the damaged one is left");
    }
}

fn of_networks_that_are_gone() {
    let place = Place::new();
    let gone = lab();
    kill_both(&gone, place.start(&gone, ""));
    let (left, living) = (place.file(), lab());
    let other = place.start(&living, "");
    assert_eq!(place.file_count(), 2, "a network that lives keeps its record");
    drop(gone);
    let third = lab();
    wait_until("the record of a network that is gone is removed", || {
        _ = place.restore(&third);
        !left.exists()
    });
    assert_eq!(place.record_count(), 1, "that of a run that goes on stays");
    other.signal("TERM");
    assert_eq!(other.end().0, Some(0));
    assert_eq!(place.file_count(), 0);
}

/// A TAP that the user made persists, under the name of the nic.
fn a_tap_that_stays() {
    for by in ["--restore", "the next run"] {
        let (lab, place) = (lab(), Place::new());
        shell(&lab, &["ip tuntap add dev rxo0 mode tap"]);
        let before = state(&lab);
        let rxo = place.start(&lab, "");
        kill_all(rxo);
        assert!(sorted(&lab, "ip -o link show").contains(PARKED));
        if by == "--restore" {
            let said = place.restore(&lab);
            assert!(said.contains("packet:eth1 has back"), "{said}");
        } else {
            let rxo = place.start(&lab, "");
            rxo.signal("TERM");
            let (code, _, said) = rxo.end();
            assert_eq!(code, Some(0), "{said}");
        }
        // Other properties of the TAP are not in the record: that it is up, and has the hardware address of
        // the nic.
        shell(&lab, &["ip link delete rxo0"]);
        let of_nic = |lines: &[String]| {
            let lines = lines.iter().filter(|line| !line.contains("rxo0"));
            lines.cloned().collect::<Vec<_>>()
        };
        let before = of_nic(&before);
        wait_until("the nic has everything", || of_nic(&state(&lab)) == before);
        assert_eq!(place.file_count(), 0);
    }
}

/// A record cannot be written, because the process may write no bytes to files.
fn a_full_disk() {
    let (lab, place) = (lab(), Place::new());
    let line = format!(
        "trap '' XFSZ; ulimit -f 0; exec {} run --json {}",
        crate::PROGRAM,
        SetUp::TakeOver.flags()
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).env("RUNTIME_DIRECTORY", place.path());
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = lab.host().run(|| shell.spawn()).unwrap().unwrap();
    let (rxo, _) = Rxo::from_child(child).expect("it runs all the same");
    assert_eq!(place.file_count(), 0, "something half is left");
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("cannot note what the nic is owed"), "{said}");
    assert_eq!(place.file_count(), 0);
}

fn a_dry_run() {
    let (lab, place) = (lab(), Place::new());
    kill_both(&lab, place.start(&lab, ""));
    let flags = SetUp::TakeOver.flags();
    let mut dry = command(&format!("run {flags} --dry-run"));
    dry.env("RUNTIME_DIRECTORY", place.path());
    let output = lab.host().run(|| dry.output()).unwrap().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("left it as `eth1-nic`") && said.contains("--restore"), "{said}");
    assert!(sorted(&lab, "ip -o link show").contains(PARKED), "something was changed");
    let said = place.restore(&lab);
    assert!(said.contains("packet:eth1 has back"), "{said}");
}
