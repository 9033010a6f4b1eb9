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
use crate::missing::Failure;
use crate::study::{Outcome, Study};

/// Runs one experiment. Its first error ends the run.
///
/// # Errors
/// If a program or a privilege is missing, a measurement fails, bytes arrived wrong, or a file cannot be
/// written; after `stop`, once the partial results have been printed.
pub(crate) fn one(study: Study, flags: &RunFlags, stop: &AtomicBool) -> Result<()> {
    (study.prepare)()?;
    run(&[study], flags, stop, Failure::Ends)
}

/// Runs `studies` one after another. A measurement that fails is missing in the results, with the reason.
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
        let tables: Vec<&str> = study.tables.iter().map(|table| table.name()).collect();
        let claims = outcome.all_claims(id, |claim| disturbed(claim, &tables, &loads));
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
    let outcome = study.measure(&turns, failure);
    turns.finish();
    Ok(Measured { outcome: outcome?, loads: turns.loads(), seconds: since.elapsed().as_secs_f64() })
}

/// Returns the reason why the machine was too busy for a verdict on `claim`: only the turns of the tables from which the
/// claim follows count. All turns count if it follows from values that the study has derived from its `tables`.
fn disturbed(claim: &Claim, tables: &[&str], loads: &[(String, Load)]) -> Option<String> {
    let read = claim.tables();
    let is_known = !read.is_empty() && read.iter().all(|name| tables.contains(&name.as_str()));
    // Turns are named after their round, their table and their case.
    let is_read = |turn: &str| turn.split(": ").nth(1).is_some_and(|table| read.contains(table));
    let counts = loads.iter().filter(|(turn, _)| !is_known || is_read(turn));
    disturbance(&counts.cloned().collect::<Vec<_>>())
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

#[cfg(test)]
mod tests {
    use rxo_testbed::MachineUse;

    use super::*;
    use crate::claim::tests::claim;

    /// An experiment may take an hour, and a machine is seldom idle for so long.
    #[test]
    fn a_claim_loses_its_verdict_by_the_turns_of_its_own_tables() {
        let load = |others_s| {
            let (elapsed, others) = (Duration::from_secs(10), Duration::from_secs(others_s));
            Load::of(MachineUse { cores: 2, elapsed, others, stolen: Duration::ZERO })
        };
        let turns = [("guests", 9), ("guests", 9), ("requests", 0), ("requests", 0)];
        let named = |(table, others_s)| (format!("round 1: {table}: a case"), load(others_s));
        let loads: Vec<_> = turns.into_iter().map(named).collect();
        let of = |names: &[&str]| {
            let names = names.iter().map(|&name| name.to_owned()).collect();
            let claim = claim("gallatin.table1.saving", Some(20.0)).with_tables(names);
            disturbed(&claim, &["costs", "guests", "requests"], &loads)
        };
        assert_eq!(of(&["requests"]), None);
        assert_eq!(of(&["requests", "costs"]), None, "counts have no turns");
        assert!(of(&["guests"]).unwrap().contains("in 2 of 2 turns"));
        assert!(of(&["requests", "guests"]).unwrap().contains("in 2 of 4 turns"));
        // Nobody knows from which tables these values follow.
        for names in [&[][..], &["requests", "derived"]] {
            assert!(of(names).unwrap().contains("in 2 of 4 turns"));
        }
    }
}
