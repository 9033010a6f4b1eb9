//! `rxo-lab cast live`: a file for many receivers by `rxo cast` and by `udpcast`, in namespaces behind one switch that
//! loses packets to each.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rxo_demo::limits::within;
use rxo_demo::turns::Turns;
use serde::Serialize;

use crate::bed::Bed;
use crate::claim::{Basis, Claim};
use crate::figure::Shape;
use crate::flags::{Part, RunFlags};
use crate::folder::Folder;
use crate::process::{self, Process};
use crate::runner::{Experiment, Outcome};
use crate::scenario::{Cells, Chart, Scenario};
use crate::smo::real::{sha256_of, write_file};

pub(crate) const PARTS: &[Part] = &[];

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Program {
    Rxo,
    Udpcast,
}

/// A program, the number of receivers, the lost packets per 1000, and the megabytes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Case(Program, usize, u64, u64);

/// The result of one transfer.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    /// The time from the start of all programs until the last receiver has the file; [`PATIENCE`] if one has not.
    seconds: f64,
    /// The part of this time after the first data.
    transfer_s: f64,
    /// Bytes on the sender's link for a byte of the file.
    copies: f64,
    /// Receivers that have the file.
    right: usize,
    /// Receivers that ended well with another file.
    wrong: usize,
}

/// The experiment, and the reason why it has no rival.
struct Live {
    scenario: Scenario<Case, Sample>,
    missing: Option<String>,
}

/// Makes the experiment from the flags.
///
/// # Errors
/// If the number of rounds is invalid, or `--only` names a part.
pub(crate) fn scenario(flags: &RunFlags) -> Result<impl Experiment + use<>> {
    flags.chosen(PARTS)?;
    let quick = flags.is_quick();
    let rounds = flags.rounds.unwrap_or(if quick { 1 } else { ROUNDS });
    within("--rounds", rounds, 1..=MOST_ROUNDS)?;
    let has_rival = Command::new("udp-sender").arg("--license").output().is_ok();
    let programs = [Program::Rxo, Program::Udpcast].into_iter().take(1 + usize::from(has_rival));
    let sizes = if quick { &SIZES[..1] } else { &SIZES[..] };
    let all = sizes.iter().flat_map(|(count, mb)| LOSSES.map(|loss| (*count, *mb, loss)));
    let cases = all.flat_map(|(count, mb, loss)| {
        programs.clone().map(move |program| Case(program, count, loss, mb))
    });
    let missing = "udpcast was not run: udp-sender is missing; `apt-get install udpcast`";
    let scenario = Scenario {
        basis: Basis::Live,
        cases: cases.collect(),
        rounds,
        rotated: 2,
        name: |case| format!("{}, {}", line(case), x(case)),
        measure: Box::new(measure),
        line: |it| format!("{:.2} s, {:.2} copies, {} right", it.seconds, it.copies, it.right),
        charts: &[TIME, BYTES_SENT],
        claims,
        is_intact: |sample| sample.wrong == 0,
        facts: vec![
            ("rounds", rounds.to_string()),
            ("mbit", (BITS_PER_S / 1_000_000).to_string()),
            ("patience", PATIENCE.as_secs().to_string()),
        ],
    };
    Ok(Live { scenario, missing: (!has_rival).then(|| missing.to_owned()) })
}

impl Experiment for Live {
    fn steps(&self) -> Result<usize> {
        self.scenario.steps()
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Outcome> {
        let outcome = self.scenario.measure(turns)?;
        Ok(Outcome { missing: self.missing.iter().cloned().collect(), ..outcome })
    }
}

const TIME: Chart<Case, Sample> =
    Chart { number: "time", x, line, value: |it| it.seconds, paper: |_| None, shape: Shape::Bars };
const BYTES_SENT: Chart<Case, Sample> = Chart { number: "bytes", value: |it| it.copies, ..TIME };

fn x(Case(_, receivers, loss, mb): Case) -> String {
    format!("{receivers}, {mb} MB, {} %", loss as f64 / 10.0)
}

fn line(Case(program, ..): Case) -> &'static str {
    match program {
        Program::Rxo => "rxo cast",
        Program::Udpcast => "udpcast",
    }
}

/// Sends a file to all receivers. Every copy is hashed.
fn measure(case: Case) -> Result<Sample> {
    let Case(program, receivers, loss, mb) = case;
    let (bed, folder) = (Bed::new(receivers, BITS_PER_S)?, Folder::new("cast-live")?);
    bed.lose(loss)?;
    let file = folder.file("image");
    let hash = write_file(&file, mb * 1_000_000)?;
    let copies: Vec<PathBuf> =
        (0..receivers).map(|number| folder.file(&format!("copy-{number}"))).collect();
    let sent_before = bed.sent_bytes()?;
    let begun = Instant::now();
    let start = |number: usize| {
        let host = if number == 0 { bed.sender() } else { bed.host(number - 1) };
        let (name, mut command) = match program {
            Program::Rxo => ("rxo cast", rxo(number, receivers, &file, &copies)?),
            Program::Udpcast => {
                let interface = host.interface(Bed::INTERFACE);
                interface.add_address([10, 0, 0, number as u8 + 1].into(), 24)?;
                interface.add_route(([224, 0, 0, 0].into(), 4), None)?;
                ("udpcast", udpcast(number, receivers, &file, &copies))
            }
        };
        host.run(|| Process::spawn(name, &mut command))?
    };
    let mut running = (1..=receivers).map(start).collect::<Result<Vec<_>>>()?;
    let _sender = start(0)?;
    let (mut first_data_s, mut seconds, mut sent) = (None, 0.0, 0);
    while !all_have_ended(&mut running)? && seconds < PATIENCE.as_secs_f64() {
        thread::sleep(BETWEEN_CHECKS);
        seconds = begun.elapsed().as_secs_f64();
        sent = bed.sent_bytes()? - sent_before;
        first_data_s = first_data_s.or((sent > CONTROL_BYTES).then_some(seconds));
    }
    let (mut right, mut wrong) = (0, 0);
    for (mut receiver, copy) in running.into_iter().zip(&copies) {
        let is_right = sha256_of(copy).is_some_and(|found| found == hash);
        right += usize::from(is_right);
        if !is_right && receiver.has_ended()? {
            let is_wrong = receiver.exit_code()? == Some(0);
            wrong += usize::from(is_wrong && program == Program::Rxo);
            let said = receiver.last_words();
            ensure!(is_wrong || program == Program::Udpcast, "a receiver of rxo: {said}");
        }
    }
    let mut transfer_s = seconds - first_data_s.unwrap_or(seconds);
    if right < receivers {
        (seconds, transfer_s) = (PATIENCE.as_secs_f64(), PATIENCE.as_secs_f64());
    }
    let copies = sent as f64 / (mb * 1_000_000) as f64;
    Ok(Sample { seconds, transfer_s, copies, right, wrong })
}

fn all_have_ended(running: &mut [Process]) -> Result<bool> {
    let mut all = true;
    for process in running {
        all &= process.has_ended()?;
    }
    Ok(all)
}

/// Returns the command of host `number`: the sender is 0.
fn rxo(number: usize, receivers: usize, file: &Path, copies: &[PathBuf]) -> Result<Command> {
    let mut command = Command::new(process::program()?);
    command.args(["rxo", "cast"]);
    match number.checked_sub(1) {
        None => command.arg("send").arg(file).arg(format!("--receivers={receivers}")),
        Some(own) => command.args(["receive", "10.0.0.1:7000"]).arg("--out").arg(&copies[own]),
    };
    command.args([
        format!("--nic=packet:{}", Bed::INTERFACE),
        format!("--ip=10.0.0.{}/24", number + 1),
        "--group=232.1.1.1:7000".to_owned(),
        "--json".to_owned(),
    ]);
    Ok(command)
}

/// Returns the command of host `number`: the sender is 0. The sender repeats its greeting, because a lost one is
/// otherwise waited for for ever.
fn udpcast(number: usize, receivers: usize, file: &Path, copies: &[PathBuf]) -> Command {
    let (program, path) = match number.checked_sub(1) {
        None => ("udp-sender", file),
        Some(own) => ("udp-receiver", &*copies[own]),
    };
    let mut command = Command::new(program);
    command.args(["--nokbd", "--no-progress", "--interface", Bed::INTERFACE]);
    command.args(["--mcast-rdv-address", "234.1.1.1", "--file"]).arg(path);
    if number == 0 {
        command.args(["--full-duplex", "--rexmit-hello-interval", "500", "--min-receivers"]);
        command.arg(receivers.to_string());
    }
    command
}

/// Returns the claims of a chart: at the loss and the size at which rxo does worst.
fn claims(chart: &'static str, cells: &Cells<Case, Sample>) -> Vec<Claim> {
    // udp-sender waits two seconds before it begins, which is no part of the claim.
    let (ids, of): ([&str; 2], fn(&Sample) -> f64) = match chart {
        "time" => (["cast-live.time.5", "cast-live.time.20"], |it| it.transfer_s),
        _ => (["cast-live.bytes.5", "cast-live.bytes.20"], |it| it.copies),
    };
    let worst = |count| {
        let rxo = cells.cases().filter(|case| case.0 == Program::Rxo && case.1 == count);
        let share = |case: Case| {
            let udpcast = Case(Program::Udpcast, case.1, case.2, case.3);
            let share = cells.median(case, of)? / cells.median(udpcast, of)?;
            // Few bytes are no merit of a file that did not arrive.
            match (all_right(cells, case), all_right(cells, udpcast)) {
                (false, _) => Some(f64::MAX),
                (true, false) if chart != "time" => None,
                _ => Some(share),
            }
        };
        rxo.filter_map(share).reduce(f64::max)
    };
    ids.into_iter().zip([5, 20]).map(|(id, count)| Claim::new(id, worst(count), None)).collect()
}

/// Returns `true` if each receiver got the file in each round.
fn all_right(cells: &Cells<Case, Sample>, case: Case) -> bool {
    cells.samples().filter(|(one, _)| *one == case).all(|(_, it)| it.right == case.1)
}

/// The receivers and the megabytes of the file.
const SIZES: [(usize, u64); 4] = [(5, 10), (20, 10), (5, 60), (20, 60)];
const LOSSES: [u64; 3] = [0, 10, 30];
const ROUNDS: usize = 3;
const MOST_ROUNDS: usize = 100;
/// The rate of the sender's link. Twenty receivers and the sender share the machine.
const BITS_PER_S: u64 = 100_000_000;
/// A transfer that takes longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const BETWEEN_CHECKS: Duration = Duration::from_millis(2);
/// More than greetings and handshakes take.
const CONTROL_BYTES: u64 = 100_000;
