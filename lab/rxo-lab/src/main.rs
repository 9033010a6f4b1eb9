//! The `rxo-lab` command: the experiments of the papers, the benchmarks, a trial of `rxo guest` with real
//! guests, and the soak.
//!
//! Each experiment has its module: a [`study`], made from its [`flags`] within `limits`, is measured in turns, in
//! networks of `rxo-testbed`, and becomes rows. Its book of [`claim`]s says which figures and verdicts follow from
//! them ([`conclude`]). One [`runner`] runs every experiment and writes one document; [`experiments`] lists those of
//! `rxo-lab all`; [`check`] compares two documents. The experiments share a network `card` on a thread, a
//! `generator` of segments, receiving `guests`, and processes of this program (`process`) that may run under
//! `callgrind`. The program changes nothing outside its own namespaces, which end with the process.
//!
//! The program contains the `rxo` command (`rxo-lab rxo …`), so that a process that an experiment starts is
//! of the same build.

mod attacks;
mod bed;
mod callgrind;
mod card;
mod cast;
mod check;
mod claim;
mod conclude;
mod counted;
mod downloads;
mod experiments;
mod figure;
mod files;
mod fit;
mod flags;
mod gallatin;
mod generator;
mod guests;
mod juggler;
mod limits;
mod menon;
mod missing;
mod modelled;
mod paro;
mod policies;
mod process;
mod rsc;
mod runner;
mod smo;
mod soak;
mod source;
mod step;
mod steps;
mod study;
mod trial;
mod xen;

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::Parser;
use rxo_cli::{exit, until_stopped};

use self::flags::{CastFlags, CastPart, Cli, Command, MenonFlags, MenonPart};
use self::runner::one;

fn main() -> ExitCode {
    match Cli::try_parse() {
        Err(error) => exit::of_flags("rxo-lab", &error),
        Ok(Cli { command: Command::Rxo { arguments } }) => {
            rxo_cli::run(std::iter::once("rxo".into()).chain(arguments))
        }
        Ok(Cli { command: Command::Bench { benchmark } }) => exit::of_result(benchmark.run()),
        Ok(Cli { command }) => exit::of_result(until_stopped(|stop| run(&command, stop))),
    }
}

/// Runs `command`. If `stop` is set, an experiment prints its results up to then.
///
/// # Errors
/// If a flag is invalid, private networks cannot be made, a transfer breaks or arrives wrong, or a file
/// cannot be read or written; after `stop`, once the partial result has been printed.
fn run(command: &Command, stop: &AtomicBool) -> Result<()> {
    match command {
        Command::All(flags) => runner::several(&experiments::all(flags)?, flags, stop),
        Command::Check(flags) => check::run(flags),
        Command::Gallatin(flags) => one(gallatin::study(flags)?, &flags.run, stop),
        Command::Cast(CastFlags { part: None, run }) => one(cast::study(run)?, run, stop),
        Command::Cast(CastFlags { part: Some(CastPart::Live(run)), .. }) => {
            one(cast::live::study(run)?, run, stop)
        }
        Command::Policies(flags) => one(policies::study(flags)?, flags, stop),
        Command::Menon(flags) => menon(flags, stop),
        Command::Xen(flags) => one(xen::study(flags)?, flags, stop),
        Command::Rsc(flags) => one(rsc::study(flags)?, &flags.run, stop),
        Command::Paro(flags) => one(paro::study(flags)?, flags, stop),
        Command::Smo(flags) => one(smo::study(flags)?, flags, stop),
        Command::Step { step } => steps::run(step, stop),
        Command::Guests(flags) => trial::run(flags, stop),
        Command::Attacks(flags) => attacks::run(flags, stop),
        Command::Juggler(flags) => one(juggler::study(flags)?, flags, stop),
        Command::Soak(flags) => soak::run(flags, stop),
        // `main` has handled these commands before.
        Command::Bench { .. } | Command::Rxo { .. } => Ok(()),
    }
}

fn menon(MenonFlags { part, run }: &MenonFlags, stop: &AtomicBool) -> Result<()> {
    match part {
        None => one(menon::receive::study(run)?, run, stop),
        Some(MenonPart::Acks(flags)) => one(menon::acks::study(flags)?, &flags.run, stop),
        Some(MenonPart::Card(run)) => one(menon::card::study(run)?, run, stop),
    }
}
