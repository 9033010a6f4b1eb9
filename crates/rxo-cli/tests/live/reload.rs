//! `rxo run --config FILE`, and reloading the file while frames pass.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rxo_testbed::Lab;
use serde_json::Value;

use crate::Test;
use crate::control::{asked, refusal, transfer};
use crate::overlay::matrix::assert_adds_up;
use crate::process::{Rxo, run, wait_until};
use crate::report::Scratch;

pub(crate) const TESTS: &[Test] = &[
    ("a_run_takes_its_flags_from_a_file", flags),
    ("a_file_that_is_read_again_and_again_loses_no_frame", again),
    ("a_file_that_is_invalid_changes_nothing", invalid),
    ("a_file_that_needs_a_restart_changes_nothing", restart),
    ("a_hangup_reads_the_file_again", hangup),
    ("a_hangup_of_a_closed_terminal_ends_a_run_with_a_file", closed_terminal),
    ("a_run_with_a_file_can_be_restored", restored),
];

/// A network, and a configuration file for a run there.
struct Desk {
    lab: Lab,
    scratch: Scratch,
}

impl Desk {
    fn new(name: &str, lines: &str) -> Self {
        let desk = Self { lab: Lab::through().unwrap(), scratch: Scratch::new(name) };
        desk.write(lines);
        desk
    }

    fn file(&self) -> PathBuf {
        self.scratch.file("rxo.toml")
    }

    fn socket(&self) -> PathBuf {
        self.scratch.file("run.sock")
    }

    /// Replaces the file by a rename, like editors.
    fn write(&self, lines: &str) {
        let socket = self.socket();
        let text = format!(
            "# a run\nnic = \"packet:wire0\"\nhost = \"tap:rxo0\"\ncontrol = \"{}\"\n{lines}",
            socket.display()
        );
        let new = self.scratch.file("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.file()).unwrap();
    }

    fn start(&self) -> (Rxo, Value) {
        Rxo::start(self.lab.host(), &format!("--config {}", self.file().display()))
    }

    fn reload(&self) -> Value {
        asked(&self.socket(), "reload")
    }

    fn engine(&self) -> Value {
        asked(&self.socket(), "policies")["engines"][0].take()
    }

    /// The number of the first line in the file after the lines that every test has.
    const FIRST: usize = 5;
}

/// Ends the run, and returns its totals. It must have printed only that the file was read again.
pub(crate) fn totals(rxo: Rxo) -> Value {
    rxo.signal("TERM");
    let (code, mut lines, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.lines().all(|line| line.contains("rxo.toml was read again")), "{said}");
    lines.pop().unwrap()
}

fn flags() {
    let desk = Desk::new(
        "config-flags",
        "hold = \"50us\"\nset = [\"flows=8\", \"max_segments=9\"]\nstats = \"3600s\"\nack-split = 2\n",
    );
    let (rxo, configuration) = desk.start();
    assert_eq!(
        (&configuration["stats_s"], &configuration["ack_split"]),
        (&3600.0.into(), &2.into())
    );
    let settings = &configuration["settings"];
    assert_eq!(
        (&settings["hold"], &settings["flows"], &settings["max_segments"]),
        (&"50us".into(), &8.into(), &9.into())
    );
    totals(rxo);
    // Flags override the file, and a dry run reads it as well.
    let path = desk.file();
    let dry = run(
        desk.lab.host(),
        &format!("run --config {} --hold auto --json --dry-run", path.display()),
    );
    let configuration: Value = serde_json::from_slice(&dry.stdout).unwrap();
    assert_eq!(configuration["settings"]["hold"], "auto:50us,8");
    // An error has its line, and a missing file its name.
    let rows = [
        (
            "hold = \"1h\"\n",
            format!("{}:{}:9: hold: 1h is invalid: end-of-poll", path.display(), Desk::FIRST),
        ),
        (
            "hodl = \"auto\"\n",
            format!(
                "{}:{}:1: there is no flag `hodl`; the nearest is `hold`",
                path.display(),
                Desk::FIRST
            ),
        ),
        (
            "wait-for-nic = 1\n",
            format!("{}:{}:16: wait-for-nic: give true or false", path.display(), Desk::FIRST),
        ),
    ];
    for (lines, message) in rows {
        desk.write(lines);
        for dry in ["", " --dry-run"] {
            let output = run(desk.lab.host(), &format!("run --config {}{dry}", path.display()));
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
            assert!(said.starts_with(&format!("rxo: {message}")), "{said}");
        }
    }
    let said = run(desk.lab.host(), "run --config nowhere.toml");
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.starts_with("rxo: --config nowhere.toml: No such file"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// The policy settings of each round, and the resulting policy.
const ROUNDS: [(&str, &str, &str); 5] = [
    ("policy = \"menon-2008\"\nset = [\"max_segments=7\"]\n", "menon-2008", "end-of-poll"),
    ("hold = \"auto\"\n", "linux-gro", "auto:50us,8"),
    ("policy = \"none\"\nstats = \"100ms\"\n", "none", "end-of-poll"),
    ("hold = \"20ms\"\nack-aggregate = true\n", "linux-gro", "20000us"),
    ("", "linux-gro", "end-of-poll"),
];

fn again() {
    let desk = Desk::new("config-again", "stats = \"0s\"\n");
    let (rxo, _) = desk.start();
    desk.lab.attach_host("rxo0").unwrap();
    let lab = &desk.lab;
    let (there, back) =
        (transfer(lab.peer(), lab.host(), lab), transfer(lab.host(), lab.peer(), lab));
    let received = || there.received_bytes().min(back.received_bytes());
    for _ in 0..4 {
        for (lines, policy, hold) in ROUNDS {
            let before = received();
            wait_until("bytes arrive", || received() > before + 500_000);
            desk.write(lines);
            let answer = desk.reload();
            assert!(!answer["changed"].as_array().unwrap().is_empty(), "{answer}");
            wait_until("the policy is in force", || {
                let engine = desk.engine();
                engine["policy"] == policy && engine["settings"]["hold"] == hold
            });
        }
    }
    assert_eq!(desk.reload()["changed"], Value::Array(Vec::new()), "nothing has changed since");
    // Every byte is compared with the byte that was sent.
    assert!(there.stop().unwrap().is_intact() && back.stop().unwrap().is_intact());
    let totals = totals(rxo);
    assert_adds_up(&totals);
    assert_eq!(totals["unaccounted"], 0, "{totals}");
    for side in ["host_out", "nic_out"] {
        assert_eq!(totals[side]["dropped"], 0, "{totals}");
    }
}

fn invalid() {
    let desk = Desk::new("config-invalid", "hold = \"50us\"\n");
    let (rxo, _) = desk.start();
    let path = desk.file();
    let at = |column: usize| format!("rxo: {}:{}:{column}: ", path.display(), Desk::FIRST);
    let rows = [
        ("hold = \"1h\"\n", at(9) + "hold: 1h is invalid: end-of-poll"),
        ("hold = 100us\n", at(8) + "invalid number; write it as TOML"),
        ("hodl = \"auto\"\n", at(1) + "there is no flag `hodl`; the nearest is `hold`"),
        (
            "policy = \"remember\"\n",
            format!("rxo: {}:3:9: host: tap:rxo0: policy remember does not fit", path.display()),
        ),
        (
            "stats = \"1s\"\nset = [\"flows=0\"]\n",
            format!("rxo: {}:{}:9: set: flows=0 is invalid", path.display(), Desk::FIRST + 1),
        ),
    ];
    for (lines, message) in rows {
        desk.write(lines);
        let said = refusal(&desk.socket(), "reload");
        assert!(said.starts_with(&message), "{said}, not {message}");
        assert_eq!(desk.engine()["settings"]["hold"], "50us");
        assert_eq!(asked(&desk.socket(), "stats")["stats_s"], 1.0);
    }
    fs::remove_file(&path).unwrap();
    let said = refusal(&desk.socket(), "reload");
    assert!(said.contains("--config") && said.contains("No such file"), "{said}");
    totals(rxo);
}

fn restart() {
    let desk = Desk::new("config-restart", "hold = \"50us\"\n");
    let (rxo, _) = desk.start();
    desk.write("hold = \"auto\"\nwatchdog = \"2s\"\nchecksum = \"trust\"\n");
    let said = refusal(&desk.socket(), "reload");
    assert!(said.contains("nothing is changed") && said.contains("checksum, watchdog;"), "{said}");
    assert_eq!(desk.engine()["settings"]["hold"], "50us");
    // Once the invalid lines are gone, the rest applies. Settings changed by hand are reset.
    asked(&desk.socket(), "stats=7s");
    desk.write("hold = \"auto\"\n");
    let changed = desk.reload()["changed"].clone();
    assert_eq!(changed, serde_json::json!(["hold", "stats"]));
    assert_eq!(asked(&desk.socket(), "stats")["stats_s"], 1.0);
    totals(rxo);
    // A run without a file refuses this request.
    let (rxo, _) = Rxo::start(
        desk.lab.host(),
        &format!("--nic packet:wire0 --host tap:rxo0 --control {}", desk.socket().display()),
    );
    let said = refusal(&desk.socket(), "reload");
    assert!(said.contains("there is no request `reload` here"), "{said}");
    totals(rxo);
}

fn hangup() {
    let desk = Desk::new("config-hangup", "hold = \"50us\"\n");
    let (rxo, _) = desk.start();
    desk.write("hold = \"auto\"\n");
    rxo.signal("HUP");
    wait_until("the hold is in force", || desk.engine()["settings"]["hold"] == "auto:50us,8");
    desk.write("hold = 1h\n");
    // Both processes get the signal, as from a process group.
    rxo.signal_worker("HUP");
    rxo.signal("HUP");
    rxo.took_signals();
    // The answer comes after the earlier hangup was handled.
    assert!(refusal(&desk.socket(), "reload").contains("invalid number"));
    assert_eq!(desk.engine()["settings"]["hold"], "auto:50us,8");
    desk.write("hold = \"polls:3\"\n");
    rxo.signal("HUP");
    wait_until("the next one is followed", || desk.engine()["settings"]["hold"] == "polls:3");
    rxo.signal("TERM");
    let (code, lines, said) = rxo.end();
    assert_eq!((code, &lines.last().unwrap()["kind"]), (Some(0), &"totals".into()), "{said}");
    assert!(said.contains("rxo.toml was read again; changed: hold"), "{said}");
    assert!(
        said.contains(" warning packet:wire0: ") && said.contains("rxo.toml:5:8: invalid number"),
        "{said}"
    );
}

/// `script` provides a terminal, and closes it when it is killed. The run's output goes elsewhere, so only
/// SIGHUP shows that the terminal is gone.
fn closed_terminal() {
    let desk = Desk::new("config-terminal", "");
    let line =
        format!("exec {} run --config {} >/dev/null 2>&1", crate::PROGRAM, desk.file().display());
    let mut script = Command::new("script");
    script.args(["-q", "-c", &line, "/dev/null"]);
    script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut script =
        desk.lab.host().run(|| script.spawn()).unwrap().expect("script, of util-linux");
    wait_until("it runs", || desk.lab.host().interface("rxo0").exists() && desk.socket().exists());
    asked(&desk.socket(), "counters");
    script.kill().unwrap();
    script.wait().unwrap();
    wait_until("it has ended", || {
        !desk.lab.host().interface("rxo0").exists() && !desk.socket().exists()
    });
}

fn restored() {
    let desk = Desk::new("config-restored", "watchdog = \"off\"\n");
    let output = run(desk.lab.host(), &format!("run --config {} --restore", desk.file().display()));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("packet:wire0 has everything"), "{said}");
}
