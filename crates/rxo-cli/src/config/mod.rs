//! `rxo run --config FILE`: reads flags from a TOML file.
//!
//! A key is the long name of a flag. [`mod@file`] turns entries into arguments, which clap parses together with
//! the typed ones, so every flag works in the file without a second definition. A typed flag overrides the same
//! flag in the file. [`places`] puts line and column before an error about an entry. The file can be read again
//! during the run.

mod file;
mod places;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use self::file::Entry;
use self::places::Places;
use crate::exit::{self, usage};
use crate::flags::{Cli, RunFlags};

/// The command line of a run with `--config`: the typed arguments, and the path of the configuration file.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The typed arguments, beginning with the program's name and the command.
    typed: Vec<OsString>,
    path: PathBuf,
}

/// The flags of a run, typed or from its configuration file, as of the last reading of the file.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) flags: RunFlags,
    pub(crate) settings: Settings,
    places: Places,
}

/// The values of all flags by their long names, defaults included.
pub(crate) type Settings = BTreeMap<String, Vec<OsString>>;

impl Source {
    /// Returns the source of a run's flags if `arguments` are `rxo run` with `--config`; otherwise `None`.
    pub(crate) fn of(arguments: &[OsString]) -> Option<Self> {
        if arguments.get(1)? != RUN {
            return None;
        }
        let matches = typed(arguments)?;
        let path = matches.get_one::<PathBuf>(CONFIG)?.clone();
        Some(Self { typed: arguments.to_vec(), path })
    }

    /// Returns the path of the configuration file, as it was typed.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the configuration file, and parses it together with the typed arguments. Returns the flags of the run.
    ///
    /// # Errors
    /// If the file cannot be read, or a flag is invalid. The message names the position in the file.
    pub(crate) fn load(&self) -> Result<Loaded> {
        self.read(File::open(&self.path))
    }

    /// Reads the opened `file` as [`load`](Self::load) does.
    ///
    /// # Errors
    /// The errors of [`load`](Self::load).
    pub(crate) fn read(&self, file: io::Result<File>) -> Result<Loaded> {
        let text = file.and_then(io::read_to_string).map_err(|error| {
            let name = self.path.display();
            usage(format!("--config {name}: {error}; name a file of TOML that can be read"))
        })?;
        self.parse(&text)
    }

    fn parse(&self, text: &str) -> Result<Loaded> {
        let name = self.path.display().to_string();
        let all = file::parse(text, &run()).map_err(|fault| usage(format!("{name}:{fault}")))?;
        let typed = self.typed_flags();
        let used: Vec<Entry> =
            all.into_iter().filter(|entry| !typed.overrides(&entry.key)).collect();
        let (begin, end) = self.typed.split_at(2);
        let from_file = used.iter().flat_map(Entry::arguments).map(OsString::from);
        let arguments: Vec<OsString> =
            begin.iter().cloned().chain(from_file).chain(end.iter().cloned()).collect();
        let places = Places::new(name, used, typed.given);
        let parsed = Cli::command().try_get_matches_from(arguments);
        let parsed = parsed
            .map_err(|error| places.locate(usage(exit::flags_line("rxo", &error.to_string()))))?;
        let matches = parsed.subcommand_matches(RUN).cloned().unwrap_or_default();
        let flags =
            RunFlags::from_arg_matches(&matches).map_err(|error| usage(error.to_string()))?;
        Ok(Loaded { flags, settings: settings(&matches), places })
    }

    fn typed_flags(&self) -> TypedFlags {
        let Some(matches) = typed(&self.typed) else { return TypedFlags::default() };
        let run = run();
        let is_typed = |arg: &&clap::Arg| {
            matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        let long = |arg: &clap::Arg| arg.get_long().map(str::to_owned);
        let mut flags = TypedFlags::default();
        for arg in run.get_arguments().filter(is_typed) {
            flags.given.extend(long(arg));
            flags.excluded.extend(run.get_arg_conflicts_with(arg).into_iter().filter_map(long));
        }
        flags
    }
}

impl Loaded {
    /// If an error is about a flag in the configuration file, puts the position of that flag in front of the error.
    pub(crate) fn locate(&self, error: Error) -> Error {
        self.places.locate(error)
    }
}

/// The long names of flags that the user typed, and of flags that conflict with the typed flags.
#[derive(Debug, Default)]
struct TypedFlags {
    given: BTreeSet<String>,
    /// Long names of flags that conflict with the typed ones, such as `host` with `--restore`.
    excluded: BTreeSet<String>,
}

impl TypedFlags {
    /// Returns `true` if the typed flags override the entry `key` of the file.
    fn overrides(&self, key: &str) -> bool {
        self.given.contains(key) || self.excluded.contains(key)
    }
}

/// Parses the typed flags alone; `None` if the flags are not those of `rxo run`. A missing flag is not an
/// error, because the file may contain it.
fn typed(arguments: &[OsString]) -> Option<ArgMatches> {
    let matches = Cli::command().ignore_errors(true).try_get_matches_from(arguments).ok()?;
    matches.subcommand_matches(RUN).cloned()
}

/// Returns clap's definition of `rxo run`.
fn run() -> clap::Command {
    let mut cli = Cli::command();
    cli.build();
    cli.find_subcommand(RUN).cloned().unwrap_or_default()
}

fn settings(matches: &ArgMatches) -> Settings {
    let values = |arg: &clap::Arg| {
        let long = arg.get_long().filter(|_| matches.contains_id(arg.get_id().as_str()))?;
        let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
        Some((long.to_owned(), values.map(ToOwned::to_owned).collect()))
    };
    let run = run();
    run.get_arguments()
        .filter(|arg| !file::NOT_IN_FILES.contains(&arg.get_id().as_str()))
        .filter_map(values)
        .collect()
}

const RUN: &str = "run";
const CONFIG: &str = "config";

#[cfg(test)]
mod tests;
