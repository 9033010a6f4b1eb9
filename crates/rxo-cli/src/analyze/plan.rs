//! The plan of `rxo analyze`, from its flags.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use rxo_console::numbers::parse_time;
use rxo_demo::costs::{self, Given};
use rxo_trace::study::{MAX_FLOWS, Part, Point, Settings};
use rxo_trace::sweep::{Grid, SweepAxis};

use crate::captures::{Input, inputs};
use crate::exit::usage;
use crate::flags::{AnalyzeFlags, ReplayFlags};
use crate::{defaults, paths, rules};

/// The work of `rxo analyze`: the traffic to study, the settings, and the outputs to write.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) work: Work,
    pub(super) settings: Settings,
    /// The file in which to save the counted traffic, so that this part can be merged with other parts. `None` saves
    /// nothing.
    pub(super) save: Option<PathBuf>,
    pub(super) json: bool,
    /// Number of flows that the report lists. The Parquet tables contain all flows.
    pub(super) listed_flows: usize,
    /// The user's costs of receiving a packet, for a projection of savings; `None` omits the projection.
    pub(super) costs: Option<Given>,
    /// Path of the HTML page to write; `None` writes no page.
    pub(super) html: Option<PathBuf>,
    /// Directory in which to write the Parquet tables; `None` writes none.
    pub(super) parquet: Option<PathBuf>,
}

/// The inputs of a study: whole captures, a part of the captures, saved parts, or a live interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Captures to read from beginning to end.
    Captures(Vec<Input>),
    /// Part `number` (from 1) of the captures, which are divided into `parts` parts of about the same number of bytes.
    Part { files: Vec<PathBuf>, number: u32, parts: u32 },
    /// Files with saved parts of a study, to be merged.
    Merge(Vec<PathBuf>),
    /// The frames that an interface receives for a time.
    Live { interface: String, time: Duration },
}

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a value is invalid; the message describes valid values.
    pub(super) fn from_flags(flags: &AnalyzeFlags) -> Result<Self> {
        let chosen = rules::point(&flags.replay, defaults::STUDIED_POLL)?;
        let costs = flags.costs.as_deref().map(costs::read).transpose()?;
        let in_force = costs.clone().unwrap_or_else(Given::assumed);
        let settings = Settings {
            costs: in_force.costs,
            costs_from: in_force.from,
            sweep: sweep(&chosen, &flags.sweep)?,
            advise: !flags.no_advice,
            checksums: rules::checksums(&flags.replay.checksum)?,
            filter: flags.flow.clone(),
            dedup: flags.dedup,
            live: flags.live.as_ref().map(|_| time(&flags.time)).transpose()?,
            top: if flags.parquet.is_some() { MAX_FLOWS } else { flags.top },
            ..Settings::new(chosen)
        };
        if let Some(name) = settings.host_name().filter(|_| flags.part.is_some()) {
            return Err(usage(format!(
                "--flow with --part: {name} may be another address on another machine; write the address"
            )));
        }
        Ok(Self {
            work: work(flags)?,
            settings,
            save: to(flags.save.as_deref(), |path| paths::for_file("--save", path))?,
            json: flags.json,
            listed_flows: flags.top,
            costs,
            html: to(flags.html.as_deref(), |path| paths::for_file("--html", path))?,
            parquet: to(flags.parquet.as_deref(), |path| {
                can_write_parquet(path)?;
                paths::for_folder("--parquet", path)
            })?,
        })
    }
}

/// Checks an optional path with `check`. Returns the checked path; `None` if there is no path.
fn to(path: Option<&Path>, check: impl Fn(&Path) -> Result<PathBuf>) -> Result<Option<PathBuf>> {
    path.map(check).transpose()
}

fn work(flags: &AnalyzeFlags) -> Result<Work> {
    if let Some(interface) = &flags.live {
        return Ok(Work::Live { interface: interface.clone(), time: time(&flags.time)? });
    }
    let inputs = inputs(&flags.files, "rxo analyze FILE… --set KEY=VALUE")?;
    let saved = inputs.iter().filter(|input| is_part(input.path())).count();
    if saved > 0 {
        return merge(flags, &inputs, saved);
    }
    let Some(text) = &flags.part else { return Ok(Work::Captures(inputs)) };
    let (number, parts) = part(text)?;
    if inputs.contains(&Input::Standard) {
        return Err(usage("--part reads files, and not standard input"));
    }
    let files = inputs.iter().map(|input| input.path().to_owned()).collect();
    Ok(Work::Part { files, number, parts })
}

/// Returns the work of merging saved parts. Refuses flags that change the study, because each saved part was already
/// counted with the settings of its own run.
fn merge(flags: &AnalyzeFlags, inputs: &[Input], saved: usize) -> Result<Work> {
    if saved < inputs.len() {
        return Err(usage("parts and captures together: analyze the captures with --save first"));
    }
    let ReplayFlags { policy, poll, checksum } = &flags.replay;
    let changes_policy = policy.policy != defaults::POLICY || policy.hold.is_some();
    let is_set = [
        ("--policy, --hold", changes_policy),
        ("--set", !policy.set.is_empty()),
        ("--poll", poll.is_some()),
        ("--checksum", checksum != "auto"),
        ("--sweep", !flags.sweep.is_empty()),
        ("--flow", flags.flow.is_some()),
        ("--dedup", flags.dedup),
        ("--no-advice", flags.no_advice),
        ("--part", flags.part.is_some()),
    ];
    match is_set.iter().find(|(_, is_set)| *is_set) {
        Some((flag, _)) => Err(usage(format!("{flag}: saved parts have their own settings"))),
        None => Ok(Work::Merge(inputs.iter().map(|input| input.path().to_owned()).collect())),
    }
}

fn time(text: &str) -> Result<Duration> {
    let valid = Duration::from_secs(1)..=Duration::from_secs(3_600);
    parse_time(text)
        .filter(|time| valid.contains(time))
        .ok_or_else(|| usage(format!("--time {text} is invalid: 1s to 60min")))
}

fn part(text: &str) -> Result<(u32, u32)> {
    let numbers = text.split_once('/').and_then(|(number, parts)| {
        let (number, parts): (u32, u32) = (number.parse().ok()?, parts.parse().ok()?);
        (1..=parts).contains(&number).then_some((number, parts))
    });
    numbers.ok_or_else(|| usage(format!("--part {text} is invalid: N/M, such as 3/8")))
}

/// Returns `true` if the file at `path` is a saved part of a study.
fn is_part(path: &Path) -> bool {
    let mut head = [0; Part::MAGIC.len()];
    // Reading from a pipe here would consume bytes that the study needs.
    path.is_file()
        && std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok()
        && Part::is_at(&head)
}

fn sweep(chosen: &Point, texts: &[String]) -> Result<Option<Grid>> {
    if texts.is_empty() {
        return Ok(None);
    }
    let axes: Result<Vec<SweepAxis>, _> = texts.iter().map(|text| text.parse()).collect();
    axes.and_then(|axes| Grid::new(chosen, axes))
        .map(Some)
        .map_err(|error| usage(format!("--sweep {error}")))
}

/// Refuses `--parquet` in a build that cannot write Parquet tables.
///
/// # Errors
/// If the build lacks the feature `parquet`; the message names the builds that have it.
pub(super) fn can_write_parquet(folder: &Path) -> Result<()> {
    if cfg!(feature = "parquet") {
        return Ok(());
    }
    Err(usage(format!(
        "--parquet {}: this build has no Parquet; build rxo with `--features parquet`, or `pip install` the \
         Python package, whose studies write the same tables",
        folder.display()
    )))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use rxo_trace::study::{ChecksumMode, PollRule};

    use super::*;
    use crate::flags::{Cli, Command};

    fn plan(line: &str) -> Result<Plan> {
        match Cli::try_parse_from(line.split_whitespace())?.command {
            Command::Analyze(flags) => Plan::from_flags(&flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_not_said_has_its_default() {
        let plan = plan("rxo analyze a.pcap").unwrap();
        let settings = plan.settings;
        assert_eq!(settings.chosen.policy.name, "linux-gro");
        assert_eq!(settings.chosen.poll, PollRule::Time(std::time::Duration::from_micros(50)));
        assert!(settings.sweep.is_none() && settings.advise && settings.filter.is_none());
        assert_eq!((settings.checksums, settings.top), (ChecksumMode::Auto, 10));
    }

    #[test]
    fn two_sweeps_make_a_grid() {
        let plan = plan("rxo analyze a b --sweep flows=1..8 --sweep hold=packets:4..64*2").unwrap();
        assert!(matches!(plan.work, Work::Captures(inputs) if inputs.len() == 2));
        assert_eq!(plan.settings.sweep.unwrap().points.len(), 40);
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows = [
            ("", "no capture: give files before the options"),
            ("--set flows=8 a.pcap", "--set a.pcap: write key=value"),
            ("- -", "- twice"),
            ("a --part 9/8 --save p", "--part 9/8 is invalid: N/M, such as 3/8"),
            ("a --part 1/8 --save p --flow (x)", "--flow with --part: x may be another address"),
            ("- --part 1/8 --save p", "--part reads files"),
            ("a --part 1/8", "error: the following required arguments were not provided"),
            ("a --poll often", "--poll often is invalid: packets:N (1 to 32768), time:T"),
            ("--live eth0 --time 100ms", "--time 100ms is invalid: 1s to 60min"),
            ("--live eth0 a.pcap", "error: the argument '--live <IF>' cannot be used with"),
            ("a --time 9s", "error: the argument '[FILE]...' cannot be used with '--time"),
            ("a --checksum maybe", "--checksum maybe is invalid: auto, verify, partial or trust"),
            ("a --sweep flows=1..99", "--sweep 99 combinations: at most 64"),
            ("a --hold 1h", "--hold 1h is invalid: end-of-poll"),
            ("a --costs fast", "--costs fast: No such file"),
            ("a --costs packet=1ns", "--costs packet=1ns: byte=TIME is missing"),
            ("a --html /no/where/r.html", "--html /no/where/r.html: there is no folder /no/where"),
            ("a --policy lro", "--policy lro: there is no policy 'lro'"),
        ];
        for (flags, message) in rows {
            let error = plan(&format!("rxo analyze {flags}")).unwrap_err().to_string();
            assert!(error.starts_with(message), "{flags}: {error}");
            assert!(error.starts_with("error: ") || !error.contains('\n'));
        }
    }
}
