//! Experiments in private networks: those of the papers ([`repro()`]), the [`demo()`], the
//! calibration ([`calibrate()`]) and the trial of `rxo guest` ([`try_guests()`]).
//!
//! From the top: each experiment has its module. Its plan, made of what was typed (its flags stand
//! in [`flags`], what they accept in `limits`), is an `experiment`: it is measured in `turns` in
//! networks of `rxo-lab`; samples become rows, rows become findings, and these a report.
//! What the experiments share: threads of rxo's (`running`), such as a network `card` or a worker between two devices
//! (`through`), a bulk sender behind it (`sending`), guests that receive (`guests`), processes of this program
//! (`process`), also under `callgrind`, the machine and its cores, its other load (`load`, which may forbid a
//! verdict), medians with their spread, figures, and statements that are held against what was measured.
//! Nothing outside the process's own namespaces is touched, and they go with the process.

mod calibrate;
mod callgrind;
mod card;
mod demo;
mod experiment;
mod figure;
pub mod flags;
mod folder;
mod gallatin;
mod guests;
mod limits;
mod load;
mod losses;
mod machine;
mod menon;
mod missing;
mod modelled;
mod paro;
mod process;
mod progress;
mod rsc;
mod running;
mod sending;
mod smo;
mod statement;
mod stats;
mod through;
mod trial;
mod turns;
mod wrap;
mod xen;

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use rxo_console::output;

use self::flags::{
    CalibrateFlags, DemoFlags, MenonPart, Paper, ParoStep, ReproFlags, SmoStep, TryFlags, XenStep,
};

pub use self::calibrate::costs;

/// Repeats a paper's experiments and prints them beside its own results. When `stop` is set, it
/// prints what was measured until then.
///
/// # Errors
/// When a flag is invalid, private networks cannot be made, a transfer breaks or arrives wrong, or
/// a file cannot be read or written; after `stop`, when the partial result has been printed.
pub fn repro(flags: &ReproFlags, stop: &AtomicBool) -> Result<()> {
    match &flags.paper {
        Paper::Gallatin(flags) => experiment::run(&gallatin::Plan::from_flags(flags)?, stop),
        Paper::Menon(flags) => match &flags.part {
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
        },
        Paper::Rsc(flags) => experiment::run(&rsc::Plan::from_flags(flags)?, stop),
        Paper::Paro(flags) => match &flags.step {
            None => {
                let plan = paro::Plan::from_flags(flags)?;
                plan.prepare()?;
                experiment::run(&plan, stop)
            }
            Some(ParoStep::Server(flags)) => paro::server::run(flags),
        },
        Paper::Xen(flags) => match &flags.step {
            None => {
                let plan = xen::Plan::from_flags(flags)?;
                plan.prepare();
                experiment::run(&plan, stop)
            }
            Some(XenStep::Driver(flags)) => xen::driver::run(flags),
        },
        Paper::Smo(flags) => match &flags.step {
            None => {
                let plan = smo::Plan::from_flags(flags)?;
                plan.prepare()?;
                experiment::run(&plan, stop)
            }
            Some(SmoStep::Sender(flags)) => smo::cost::run(flags),
            Some(SmoStep::Rack(flags)) => smo::real::rack::run(flags, stop),
        },
    }
}

/// Measures what receiving costs on this machine, prints it, and saves it if asked to. When `stop` is
/// set, the costs are of the rounds until then.
///
/// # Errors
/// When a flag is invalid, private networks cannot be made, a transfer breaks, the measurements do not
/// tell the costs apart, or the file cannot be written; with `--save`, when the machine was busy.
pub fn calibrate(flags: &CalibrateFlags, stop: &AtomicBool) -> Result<()> {
    let plan = calibrate::Plan::from_flags(flags)?;
    if cfg!(debug_assertions) {
        output::note(
            "this build has debug assertions, and what it measures of rxo means nothing; build it \
             with --release",
        );
    }
    experiment::run(&plan, stop)
}

/// Measures the same transfer over several paths, and prints them side by side. When `stop` is set,
/// it prints what was measured until then.
///
/// # Errors
/// When a flag is invalid, private networks cannot be made, a transfer breaks, or bytes arrived that
/// were not sent; after `stop`, when the partial result has been printed.
pub fn demo(flags: &DemoFlags, stop: &AtomicBool) -> Result<()> {
    if flags.reverse {
        experiment::run(&demo::reverse::Plan::from_flags(flags)?, stop)
    } else {
        experiment::run(&demo::Plan::from_flags(flags)?, stop)
    }
}

/// Boots guests behind `rxo guest`, transfers a file into each and back, and prints what came of it.
///
/// # Errors
/// When a program is missing, a guest does not start, or a hash is wrong; after `stop`.
pub fn try_guests(flags: &TryFlags, stop: &AtomicBool) -> Result<()> {
    trial::run(flags, stop)
}
