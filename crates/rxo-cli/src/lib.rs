//! The `rxo` command.
//!
//! `flags` defines the flags; for `rxo run` some may come from a file (`config`). Each command is a module
//! that makes a plan from its flags, and then acts on the plan.
//!
//! * `run`: works between two devices, or a device and several guests (`rxo run`, `rxo card`, `rxo guest`).
//! * `doctor`: prints the `findings` about a machine, which `--dry-run` prints too. `policies` lists
//!   policies.
//! * `serve`, `cat`, `bulk` (`rxo sink`, `rxo source`) and `cast`: run on rxo's own host (`hosting`). `cat`
//!   and `bulk` have an `endpoint`: one end of a connection.
//! * `analyze`, `compare`, `coalesce`, `expand` and `verify`: process `captures`.
//! * `ctl`: sends requests to a running command, which answers them in `control`. `metrics` exports the same
//!   counters to Prometheus.
//! * The demo and the calibration are in the crate `rxo_demo`.
//!
//! `exit` turns an error into one line and an exit code; nothing else ends the process.
//!
//! The command is a library, and its binary only calls [`run()`]. So the laboratory's program can run the
//! command from its own binary.

mod analyze;
mod bulk;
mod captures;
mod cast;
mod cat;
mod coalesce;
mod compare;
mod config;
mod control;
mod ctl;
mod defaults;
mod doctor;
mod endpoint;
pub mod exit;
mod expand;
mod files;
mod findings;
mod flags;
mod hosting;
mod loops;
mod metrics;
mod policies;
mod rules;
mod run;
mod sandbox;
mod serve;
mod stop;
mod tap;
mod verify;
mod workers;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::{CommandFactory, Parser};
use rxo_console::{numbers, output, paths, table};

use crate::config::Source;
use crate::flags::{Cli, Command};

/// Runs a command and returns its exit code. `arguments` begin with the program's name, as `std::env::args_os` does.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(source) = Source::of(&arguments) {
        return exit::of_result(run::with_file(&source));
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return exit::of_flags("rxo", &error),
    };
    exit::of_result(match &cli.command {
        Command::Analyze(flags) => analyze::command(flags),
        Command::Compare(flags) => compare::command(flags),
        Command::Coalesce(flags) => coalesce::command(flags),
        Command::Expand(flags) => expand::command(flags),
        Command::Verify(flags) => verify::command(flags),
        Command::Calibrate(flags) => until_stopped(|stop| rxo_demo::calibrate(flags, stop)),
        Command::Run(flags) => run::command(flags),
        Command::Card(flags) => run::card(flags),
        Command::Guest(flags) => run::guests(flags),
        Command::Doctor(flags) => doctor::command(flags),
        Command::Demo(flags) => until_stopped(|stop| rxo_demo::demo(flags, stop)),
        Command::Serve(flags) => serve::command(flags),
        Command::Cat(flags) => cat::command(flags),
        Command::Cast(flags) => cast::command(flags),
        Command::Sink(flags) => bulk::sink(flags),
        Command::Source(flags) => bulk::source(flags),
        Command::Ctl(flags) => ctl::command(flags),
        Command::Policies(flags) => policies::command(flags),
    })
}

/// Returns the definition of all commands and flags, from which completions and manual pages are made.
#[must_use]
pub fn definition() -> clap::Command {
    Cli::command()
}

/// Runs `experiment`. Its argument is a flag that SIGINT and SIGTERM set; `experiment` must check the flag and
/// end soon after it is set.
///
/// # Errors
/// The errors of `experiment`, and an error if the signal handlers cannot be installed.
pub fn until_stopped(experiment: impl FnOnce(&AtomicBool) -> Result<()>) -> Result<()> {
    experiment(stop::on_request()?.as_ref())
}
