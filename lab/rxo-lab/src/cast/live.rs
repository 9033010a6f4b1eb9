//! `rxo-lab cast live`: a file for many receivers by `rxo cast` and by `udpcast`, in namespaces behind one switch that
//! loses packets to each.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rxo_demo::limits::within;
use rxo_peers::Folder;
use serde::Serialize;

use crate::bed::Bed;
use crate::flags::{Part, RunFlags};
use crate::process::{self, Process};
use crate::smo::real::{sha256_of, write_file};
use crate::study::{Study, Table};

pub(crate) const PARTS: &[Part] = &[];

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Program {
    Rxo,
    Udpcast,
}

impl Program {
    const fn name(self) -> &'static str {
        match self {
            Self::Rxo => "rxo cast",
            Self::Udpcast => "udpcast",
        }
    }
}

/// The parameters of one transfer.
#[derive(Clone, Copy, Debug, Serialize)]
struct Case {
    program: Program,
    receivers: usize,
    /// Lost packets of 1,000.
    loss: u64,
    /// Megabytes of the file.
    mb: u64,
}

/// The result of one transfer.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    /// The time from the start of all programs until the last receiver has the file; [`TIMEOUT`] if one has
    /// not.
    seconds: f64,
    /// The part of this time after the first data.
    transfer_s: f64,
    /// Bytes on the sender's link for a byte of the file.
    copies: f64,
    /// Receivers that have the file.
    right: usize,
    /// `true` if all receivers have the file.
    all_right: bool,
    /// `false` if a receiver ended well with another file.
    is_intact: bool,
}

/// Makes the experiment from the flags.
///
/// # Errors
/// If the number of rounds is invalid, or `--only` names a part.
pub(crate) fn study(flags: &RunFlags) -> Result<Study> {
    flags.chosen(PARTS)?;
    let quick = flags.is_quick();
    let rounds = flags.rounds.unwrap_or(if quick { 1 } else { ROUNDS });
    within("--rounds", rounds, 1..=MOST_ROUNDS)?;
    let has_rival = Command::new("udp-sender").arg("--license").output().is_ok();
    let programs = [Program::Rxo, Program::Udpcast].into_iter().take(1 + usize::from(has_rival));
    let sizes = if quick { &SIZES[..1] } else { &SIZES[..] };
    let all = sizes.iter().flat_map(|size| LOSSES.map(|loss| (*size, loss)));
    let cases = all.flat_map(|((receivers, mb), loss)| {
        programs.clone().map(move |program| Case { program, receivers, loss, mb })
    });
    let name = |Case { program, receivers, loss, mb }: Case| {
        format!("{}, {receivers}, {mb} MB, {} %", program.name(), loss as f64 / 10.0)
    };
    let measure = |case, _| measure(case);
    let cases = ("transfers", cases.collect());
    let table = Table::timed(cases, rounds, name, measure, ("seconds", "s")).in_groups_of(2);
    let facts = vec![
        ("rounds", rounds.to_string()),
        ("mbit", (BITS_PER_S / 1_000_000).to_string()),
        ("patience", TIMEOUT.as_secs().to_string()),
    ];
    let missing = "udpcast was not run: udp-sender is missing; `apt-get install udpcast`";
    Ok(Study {
        facts: Box::new(move |_| facts.clone()),
        missing: Vec::from_iter((!has_rival).then(|| missing.to_owned())),
        ..Study::of("cast-live", vec![Box::new(table)])
    })
}

/// Sends a file to all receivers. Every copy is hashed.
fn measure(case: Case) -> Result<Sample> {
    let Case { program, receivers, loss, mb } = case;
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
        let mut command = match program {
            Program::Rxo => rxo(number, receivers, &file, &copies)?,
            Program::Udpcast => {
                let interface = host.interface(Bed::INTERFACE);
                interface.add_address([10, 0, 0, number as u8 + 1].into(), 24)?;
                interface.add_route(([224, 0, 0, 0].into(), 4), None)?;
                udpcast(number, receivers, &file, &copies)
            }
        };
        host.run(|| Process::spawn(program.name(), &mut command))?
    };
    let mut running = (1..=receivers).map(start).collect::<Result<Vec<_>>>()?;
    let _sender = start(0)?;
    let (mut first_data_s, mut seconds, mut sent) = (None, 0.0, 0);
    while !all_have_ended(&mut running)? && seconds < TIMEOUT.as_secs_f64() {
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
        (seconds, transfer_s) = (TIMEOUT.as_secs_f64(), TIMEOUT.as_secs_f64());
    }
    let copies = sent as f64 / (mb * 1_000_000) as f64;
    let all_right = right == receivers;
    Ok(Sample { seconds, transfer_s, copies, right, all_right, is_intact: wrong == 0 })
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

/// The receivers and the megabytes of the file.
const SIZES: [(usize, u64); 4] = [(5, 10), (20, 10), (5, 60), (20, 60)];
const LOSSES: [u64; 3] = [0, 10, 30];
const ROUNDS: usize = 3;
const MOST_ROUNDS: usize = 100;
/// The rate of the sender's link. Twenty receivers and the sender share the machine.
const BITS_PER_S: u64 = 100_000_000;
/// A transfer that takes longer is not waited for.
const TIMEOUT: Duration = Duration::from_secs(60);
const BETWEEN_CHECKS: Duration = Duration::from_millis(2);
/// More than greetings and handshakes take.
const CONTROL_BYTES: u64 = 100_000;
