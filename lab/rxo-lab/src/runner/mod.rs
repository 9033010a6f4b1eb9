//! Runs experiments: prepares them, judges the machine's load, measures in turns, and writes one document of all
//! results, which `lab/report` turns into tables, figures and pages. Every experiment runs by this one function.
//! Without `--json` it prints a line for each claim.

mod document;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rxo_console::fault::partial;
use rxo_console::paths::for_folder;
use rxo_console::{files, output};
use rxo_demo::experiment::privilege;
use rxo_demo::load::{Load, disturbance};
use rxo_demo::turns::Turns;
use rxo_testbed::MachineReading;

use self::document::Document;
use crate::claim::Claim;
use crate::flags::RunFlags;
use crate::study::{Outcome, Study};

/// The treatment of an experiment that fails.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    Ends,
    /// The results name the reason, and the next experiment runs.
    IsNoted,
}

/// Runs one experiment. Its first error ends the run.
///
/// # Errors
/// If a program or a privilege is missing, a measurement fails, bytes arrived wrong, or a file cannot be
/// written; after `stop`, once the partial results have been printed.
pub(crate) fn one(study: Study, flags: &RunFlags, stop: &AtomicBool) -> Result<()> {
    (study.prepare)()?;
    run(&[study], flags, stop, Failure::Ends)
}

/// Runs `studies` one after another. An experiment that fails is missing in the results, with the reason.
///
/// # Errors
/// If a privilege is missing, bytes arrived wrong, or a file cannot be written; once the results have been
/// written, if parts are missing.
pub(crate) fn several(studies: &[Study], flags: &RunFlags, stop: &AtomicBool) -> Result<()> {
    for study in studies {
        // What is missing here is missing again when the study runs, and is noted then.
        _ = (study.prepare)();
    }
    run(studies, flags, stop, Failure::IsNoted)
}

fn run(studies: &[Study], flags: &RunFlags, stop: &AtomicBool, failure: Failure) -> Result<()> {
    let out = flags.out.as_deref().map(|out| for_folder("--out", out)).transpose()?;
    let needs_networks = studies.iter().any(|study| study.needs_networks);
    let privilege = if needs_networks { privilege()? } else { "not needed" };
    let mut document = Document::begin(flags.extent(), privilege);
    let (mut texts, mut damage) = (Vec::new(), None);
    for study in studies {
        let id = study.id;
        let Measured { outcome, loads, seconds } = measured(study, flags, stop, failure)?;
        let claims = outcome.all_claims(id, disturbance(&loads).as_deref());
        texts.extend(claims.iter().map(Claim::line));
        damage = damage.or_else(|| outcome.damage.clone());
        document.partial = document.partial.or_else(|| why_partial(&outcome, id, stop));
        document.add(id, (outcome, claims), (loads, seconds));
        // After each experiment, so that an end of the process loses only the one that runs.
        out.as_deref().map_or(Ok(()), |out| write(&document, out))?;
        if is_set(stop) {
            break;
        }
    }
    texts.extend(document.partial.iter().map(|why| format!("Partial: {why}.")));
    match flags.json {
        true => output::json_document(&document)?,
        false => output::text(&texts.join("\n"))?,
    }
    damage.map_or(Ok(()), |damage| bail!(damage))?;
    document.partial.map_or(Ok(()), |why| Err(partial(why)))
}

struct Measured {
    outcome: Outcome,
    /// The load during each turn that took real time.
    loads: Vec<(String, Load)>,
    seconds: f64,
}

fn measured(
    study: &Study,
    flags: &RunFlags,
    stop: &AtomicBool,
    failure: Failure,
) -> Result<Measured> {
    let since = Instant::now();
    let steps = study.steps();
    if study.needs_networks && !flags.json && !is_set(stop) {
        warn_if_busy();
    }
    let turns = Turns::new(steps, flags.json, stop).repeating(steps / REPEATED);
    let outcome = study.measure(&turns).or_else(|error| match failure {
        Failure::Ends => Err(error),
        Failure::IsNoted => {
            Ok(Outcome { missing: vec![format!("{error:#}")], ..Outcome::default() })
        }
    });
    turns.finish();
    Ok(Measured { outcome: outcome?, loads: turns.loads(), seconds: since.elapsed().as_secs_f64() })
}

/// Prints a note if other processes keep the machine busy before a run that takes real time.
fn warn_if_busy() {
    let load = || {
        let before = MachineReading::now().ok()?;
        std::thread::sleep(CHECK_INTERVAL);
        Some(Load::of(MachineReading::now().ok()?.since(&before)))
    };
    if let Some(load) = load().filter(|load| !load.permits_verdict) {
        output::note(&format!(
            "other processes use {:.0} % of this machine: what takes real time may get no verdict; end them, or \
             measure only what is counted (--counted)",
            load.others_percent + load.stolen_percent
        ));
    }
}

fn why_partial(outcome: &Outcome, id: &str, stop: &AtomicBool) -> Option<String> {
    if is_set(stop) {
        return Some("stopped by a signal: this is what was measured until then".to_owned());
    }
    let missing = &outcome.missing;
    (!missing.is_empty()).then(|| format!("{id}: {}", missing.join("; ")))
}

fn is_set(stop: &AtomicBool) -> bool {
    stop.load(std::sync::atomic::Ordering::Relaxed)
}

/// Writes results.json into the folder `out`, completely or not at all.
fn write(document: &Document, out: &Path) -> Result<()> {
    let path = out.join("results.json");
    let failed = || format!("cannot write {}; choose another folder with --out", path.display());
    fs::create_dir_all(out).with_context(failed)?;
    let text = serde_json::to_string_pretty(document)? + "\n";
    files::replace(&path, |file| file.write_all(text.as_bytes())).with_context(failed)
}

/// One turn in so many may be repeated because the machine was busy.
const REPEATED: usize = 2;
/// The time for which the machine is watched before a run.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
