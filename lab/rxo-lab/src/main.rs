//! The `rxo-lab` command: the experiments of the papers, the benchmarks, a trial of `rxo guest` with real
//! guests, and the soak.
//!
//! Each experiment has its module. Its plan is made from its [`flags`], within `limits`, and measured by
//! `rxo-demo` in turns, in networks of `rxo-testbed`; samples become rows, rows become findings, and findings
//! a report. The experiments share a network `card` on a thread, receiving `guests`, processes of this
//! program (`process`) that may run under `callgrind`, figures, and statements with verdicts. The program
//! changes nothing outside its own namespaces, which end with the process.
//!
//! The program contains the `rxo` command (`rxo-lab rxo …`), so that a process that an experiment starts is
//! of the same build.

mod attacks;
mod callgrind;
mod card;
mod downloads;
mod figure;
mod files;
mod flags;
mod folder;
mod gallatin;
mod guests;
mod juggler;
mod limits;
mod menon;
mod missing;
mod modelled;
mod paro;
mod process;
mod rsc;
mod scale;
mod smo;
mod soak;
mod statement;
mod trial;
mod xen;

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::Parser;
use rxo_cli::{exit, until_stopped};
use rxo_demo::experiment;

use self::flags::{Cli, Command, MenonFlags, MenonPart, ParoStep, SmoStep, XenStep};

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

/// Runs the experiment `command` and prints its results beside the paper's. If `stop` is set, prints the
/// measurements up to then.
///
/// # Errors
/// If a flag is invalid, private networks cannot be made, a transfer breaks or arrives wrong, or a file
/// cannot be read or written; after `stop`, once the partial result has been printed.
fn run(command: &Command, stop: &AtomicBool) -> Result<()> {
    match command {
        Command::Gallatin(flags) => experiment::run(&gallatin::Plan::from_flags(flags)?, stop),
        Command::Menon(flags) => menon(flags, stop),
        Command::Rsc(flags) => experiment::run(&rsc::Plan::from_flags(flags)?, stop),
        Command::Paro(flags) => match &flags.step {
            None => {
                let plan = paro::Plan::from_flags(flags)?;
                plan.prepare()?;
                experiment::run(&plan, stop)
            }
            Some(ParoStep::Server(flags)) => paro::server::run(flags),
        },
        Command::Xen(flags) => match &flags.step {
            None => {
                let plan = xen::Plan::from_flags(flags)?;
                plan.prepare();
                experiment::run(&plan, stop)
            }
            Some(XenStep::Driver(flags)) => xen::driver::run(flags),
        },
        Command::Smo(flags) => match &flags.step {
            None => {
                let plan = smo::Plan::from_flags(flags)?;
                plan.prepare()?;
                experiment::run(&plan, stop)
            }
            Some(SmoStep::Sender(flags)) => smo::cost::run(flags),
            Some(SmoStep::Rack(flags)) => smo::real::rack::run(flags, stop),
        },
        Command::Guests(flags) => trial::run(flags, stop),
        Command::Attacks(flags) => attacks::run(flags, stop),
        Command::Juggler(flags) => juggler::run(flags),
        Command::Scale(flags) => scale::run(flags),
        Command::Soak(flags) => soak::run(flags, stop),
        // `main` has handled these commands before.
        Command::Bench { .. } | Command::Rxo { .. } => Ok(()),
    }
}

fn menon(flags: &MenonFlags, stop: &AtomicBool) -> Result<()> {
    match &flags.part {
        None => experiment::run(&menon::receive::Plan::from_flags(&flags.receive)?, stop),
        Some(MenonPart::Acks(flags)) => {
            experiment::run(&menon::acks::Plan::from_flags(flags)?, stop)
        }
        Some(MenonPart::Card(flags)) => {
            let plan = menon::card::Plan::from_flags(flags)?;
            plan.prepare()?;
            experiment::run(&plan, stop)
        }
        Some(MenonPart::Receiver(flags)) => menon::card::receiver::run(flags, stop),
        Some(MenonPart::Domain(flags)) => menon::card::linux::domain::run(flags),
    }
}
