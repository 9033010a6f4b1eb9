//! Runs real casts: `rxo cast send` in a namespace, a switch, and eight namespaces with up to 21 receivers
//! each ([`rack`]). The sender's link is limited, because receivers and sender share the machine. Every copy
//! is hashed.

pub(crate) mod rack;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Signal, kill_process};
use rxo_peers::Folder;
use rxo_testbed::traffic::Pattern;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use self::rack::Copied;
use super::model::{GROUP, PORT, SEGMENT_BYTES, SENDER, least_time_of_frames};
use super::sender::{Case, Way};
use crate::bed::Bed;
use crate::process::{self, Process};
use crate::step;

/// Rate of the sender's link, in bits per second.
const BITS_PER_S: u64 = 40_000_000;

/// Number of racks, as many as the paper has receiving machines.
const RACKS: usize = 8;

/// The result of one cast.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sample {
    /// Duration of the cast as reported by `rxo cast send`, in seconds.
    seconds: f64,
    /// This duration in percent of what the link alone takes.
    percent: f64,
    /// Receivers whose file has the right length and hash.
    right: usize,
    /// `true` if the file of each receiver is right, except that of one that was killed.
    is_intact: bool,
    /// `true` if the sender reports one receiver that failed, and no more.
    is_reported: bool,
    /// Receivers that joined.
    joined: usize,
    /// Outcomes of the failed receivers, as reported by the sender.
    failed: Vec<String>,
    exit_code: Option<i32>,
    group_repairs: u64,
    own_repairs: u64,
    /// Frames lost on the way to receivers.
    lost: u64,
    /// Frames that a receiver sent, per segment.
    acks_a_segment: f64,
}

/// The faults injected into a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Nothing,
    /// Loses 1 % of the frames to each receiver, kills one extra receiver, and stops another for 3 s.
    Hardship,
}

/// A line of `rxo cast send --json` about a receiver.
#[derive(Debug, Deserialize)]
struct Ended {
    outcome: String,
}

/// The last line of `rxo cast send --json`.
#[derive(Debug, Deserialize)]
struct Total {
    seconds: f64,
    receivers: usize,
    group_repairs: u64,
    own_repairs: u64,
    sha256: String,
}

/// Sends a file of `bytes` bytes to `receivers`.
pub(super) fn cast(Case { way, receivers }: Case, fate: Fate, bytes: u64) -> Result<Sample> {
    let (bed, folder) = (Bed::new(RACKS, BITS_PER_S)?, Folder::new("smo-real")?);
    let file = folder.file("image");
    let hash = write_file(&file, bytes)?;
    let (unlucky, loss_ppm) = if fate == Fate::Hardship { (2, LOSS_PPM) } else { (0, 0) };
    let all = receivers + unlucky;
    let mut sender = bed.sender().run(|| start_sender(&file, way, all))??;
    let start = |rack: usize, first: usize, count: usize| {
        bed.host(rack).run(|| start_rack(first, count, loss_ppm))?
    };
    let each = receivers.div_ceil(RACKS);
    let starts = (0..receivers).step_by(each).enumerate();
    let racks = starts.map(|(rack, first)| start(rack, first, each.min(receivers - first)));
    let mut racks = racks.collect::<Result<Vec<_>>>()?;
    let unlucky = (0..unlucky).map(|number| start(number, receivers + number, 1));
    let unlucky = unlucky.collect::<Result<Vec<_>>>()?;
    racks.extend(strike(unlucky, &bed, bytes)?);
    let ended = (0..all).map(|_| sender.line::<Ended>()).collect::<Result<Vec<_>>>()?;
    let total: Total = sender.line()?;
    ensure!(total.sha256 == hash, "the sender's hash is not the file's");
    let copies = racks.iter_mut().map(Process::finish::<Vec<Copied>>);
    let copies: Vec<Copied> = copies.collect::<Result<Vec<_>>>()?.concat();
    let is_right = |copy: &&Copied| copy.bytes == bytes && copy.sha256 == hash;
    let segments = bytes.div_ceil(SEGMENT_BYTES as u64) as f64;
    let least_s = least_time_of_frames(bytes, BITS_PER_S as f64).as_secs_f64();
    let sent: u64 = copies.iter().map(|copy| copy.frames_sent).sum();
    let right = copies.iter().filter(is_right).count();
    let failed = ended.into_iter().map(|it| it.outcome).filter(|it| it != "done");
    let (failed, exit_code) = (failed.collect::<Vec<_>>(), sender.exit_code()?);
    Ok(Sample {
        seconds: total.seconds,
        percent: 100.0 * total.seconds / least_s,
        right,
        is_intact: right >= receivers + usize::from(fate == Fate::Hardship),
        is_reported: failed.len() == 1 && exit_code == Some(1),
        joined: total.receivers,
        failed,
        exit_code,
        group_repairs: total.group_repairs,
        own_repairs: total.own_repairs,
        lost: copies.iter().map(|copy| copy.lost).sum(),
        acks_a_segment: sent as f64 / copies.len().max(1) as f64 / segments,
    })
}

/// Writes a file. Returns its SHA-256.
pub(crate) fn write_file(path: &Path, bytes: u64) -> Result<String> {
    let file = Pattern::of_port(PORT).file(bytes as usize);
    fs::write(path, &file).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(hex(&Sha256::digest(&file)))
}

/// Returns the SHA-256 of a file; `None` if it cannot be read.
pub(crate) fn sha256_of(path: &Path) -> Option<String> {
    Some(hex(&Sha256::digest(fs::read(path).ok()?)))
}

fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn start_sender(file: &Path, way: Way, receivers: usize) -> Result<Process> {
    let mut command = Command::new(process::program()?);
    let fast = if way == Way::Fast { "on" } else { "off" };
    command.args(["rxo", "cast", "send"]).arg(file).args([
        format!("--nic=packet:{}", Bed::INTERFACE),
        format!("--ip={SENDER}/8"),
        format!("--group={GROUP}:{PORT}"),
        format!("--receivers={receivers}"),
        format!("--fast-path={fast}"),
    ]);
    command.args(["--raw", "--json", "--wait=120s", "--pace=paper"]);
    Process::spawn("rxo cast send", &mut command)
}

fn start_rack(first: usize, receivers: usize, loss_ppm: u32) -> Result<Process> {
    let mut command = Command::new(process::program()?);
    let interface = Bed::INTERFACE.to_owned();
    let rack = rack::Parameters { interface, first, receivers, loss_ppm };
    command.args(step::arguments("Rack", &rack)?);
    Process::start("a rack", &mut command)
}

/// Once a quarter of the file has left, kills the first process and stops the second for 3 s. Returns the
/// surviving one.
fn strike(unlucky: Vec<Process>, bed: &Bed, bytes: u64) -> Result<Vec<Process>> {
    let mut unlucky = unlucky.into_iter();
    let (Some(killed), Some(stopped)) = (unlucky.next(), unlucky.next()) else {
        return Ok(Vec::new());
    };
    for _ in 0..TIMEOUT_S * 100 {
        if bed.sent_bytes()? > bytes / 4 {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    drop(killed);
    let id = stopped.pid().context("the receiver that is to be stopped has no number")?;
    kill_process(id, Signal::STOP)?;
    thread::sleep(STOPPED);
    kill_process(id, Signal::CONT)?;
    Ok(vec![stopped])
}

const LOSS_PPM: u32 = 10_000;
const STOPPED: Duration = Duration::from_secs(3);
const TIMEOUT_S: u32 = 120;
