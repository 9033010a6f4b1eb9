//! `rxo-lab attacks`: the service that `rxo guest` gives the neighbours of a hostile guest, without an attack and
//! under each.
//!
//! A private network has a Linux peer, `rxo guest` as a separate process, and three guests: one attacks, one receives from
//! the peer as fast as it can, one is asked every few milliseconds. The last two are `rxo sink`, so no virtual machine runs. With
//! `--before` an older program is measured in turn with this one.
//!
//! The times are those of the machine as it is; the tests of `rxo-cli` hold what is counted.

mod attack;
mod front;
mod neighbour;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process};
use rxo_console::output;
use rxo_peers::Folder;
use rxo_testbed::{Lab, MachineReading, become_root_in_user_namespace};
use serde::{Deserialize, Serialize};

use crate::flags::AttackFlags;
use crate::process::{self, Process};

use attack::{ATTACKS, Attack};
use neighbour::{Neighbour, Seen};

/// Guests by their number: the attacker, the one that receives, the one that answers.
const ATTACKER: usize = 0;
const RECEIVES: usize = 1;
const ANSWERS: usize = 2;
const GUESTS: usize = 3;

/// The results of all attacks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Findings {
    rows: Vec<Row>,
    /// The share of the processors that others used meanwhile, in percent.
    others_percent: f64,
    cores: usize,
}

/// The neighbours under one attack.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    attack: String,
    /// With the older program; `None` if it was not measured.
    before: Option<Seen>,
    now: Seen,
}

/// Measures every attack, and prints the results.
pub(crate) fn run(flags: &AttackFlags, stop: &AtomicBool) -> Result<()> {
    become_root_in_user_namespace()?;
    let time = Duration::from_secs_f64(flags.seconds.clamp(0.2, 60.0));
    let chosen =
        |attack: &&Attack| flags.only.is_empty() || flags.only.iter().any(|it| it == attack.key);
    let (before, mut rows) = (MachineReading::now()?, Vec::new());
    for attack in ATTACKS.iter().filter(chosen) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        output::aside(&format!("{}: {}", attack.key, attack.what));
        let older = flags.before.as_deref().map(|program| seen(Some(program), attack, time));
        let now = seen(None, attack, time)?;
        rows.push(Row { attack: attack.what.to_owned(), before: older.transpose()?, now });
    }
    let used = MachineReading::now()?.since(&before);
    let all = (used.elapsed * used.cores).as_secs_f64();
    let others_percent = (100.0 * (used.others + used.stolen).as_secs_f64() / all).round();
    let findings = Findings { rows, others_percent, cores: used.cores as usize };
    match flags.json {
        true => output::json_document(&findings),
        false => output::text(&table::markdown(&findings)),
    }
}

/// Measures the neighbours during one attack, with this program or another.
fn seen(program: Option<&Path>, attack: &Attack, time: Duration) -> Result<Seen> {
    let (lab, folder) = (Lab::through()?, Folder::new("attacks")?);
    let rxo = serve(program, &lab, &folder)?;
    let neighbour = Neighbour::start(&lab, &folder)?;
    let (stop, path) = (AtomicBool::new(false), folder.guest(ATTACKER));
    let seen = thread::scope(|scope| {
        scope.spawn(|| (attack.run)(&path, &stop));
        // The attack has begun by then.
        thread::sleep(Duration::from_millis(300));
        let seen = neighbour.measure(time);
        stop.store(true, Ordering::Relaxed);
        seen
    });
    // A blocked program does not end by itself, and neither does its worker.
    kill(&descendants(rxo.id()));
    drop(rxo);
    seen
}

/// Returns all processes below one.
fn descendants(process: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children: Vec<u32> =
        list.unwrap_or_default().split_whitespace().filter_map(|id| id.parse().ok()).collect();
    let below = children.iter().flat_map(|child| descendants(*child));
    below.chain(children.iter().copied()).collect()
}

fn kill(processes: &[u32]) {
    for process in processes.iter().filter_map(|id| Pid::from_raw(i32::try_from(*id).ok()?)) {
        // It may have ended already, so the error is ignored.
        _ = kill_process(process, Signal::KILL);
    }
}

/// Starts `rxo guest`, and waits until it runs.
fn serve(program: Option<&Path>, lab: &Lab, folder: &Folder) -> Result<Process> {
    let mut command = match program {
        Some(program) => Command::new(program),
        None => {
            let mut command = Command::new(process::program()?);
            command.arg("rxo");
            command
        }
    };
    let nic = format!("packet:{}", Lab::WIRE_INTERFACE);
    command.args(["guest", "--json", "--stats", "0s", "--nic", &nic]);
    for n in 0..GUESTS {
        let socket: PathBuf = folder.guest(n);
        command.arg(format!("--vhost=g{n}={},mac={}", socket.display(), neighbour::mac(n)));
    }
    let mut rxo = lab.host().run(|| Process::spawn("rxo guest", &mut command))??;
    rxo.line::<serde_json::Value>()?;
    Ok(rxo)
}
