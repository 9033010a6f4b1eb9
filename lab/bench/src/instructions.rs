//! `rxo-lab bench instructions`: counts instructions per packet with callgrind.
//!
//! Time varies with the machine and its neighbours, but the number of instructions does not. This program
//! runs itself under `valgrind --tool=callgrind`, which counts inside [`counted_pass`] only, once for each
//! workload and each case of ACK offload. It compares the counts with `instructions.json` in the repository.
//! Valgrind emulates a processor with AVX2 and without AVX-512, so the counts do not depend on the machine's.

mod cache;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, ensure};
use clap::Args;
use rxo_peers::Folder;
use rxo_testkit::{Traffic, Workload};

use crate::acks::{self, Case};
use crate::bounds::Bound;
use crate::contender::{Acks, Contender, Rxo};
use crate::engine::{WORKLOADS, workload};
use crate::lineup::{Checksum, Course, PURE_ACKS};
use crate::stages;
use crate::tcp::{AckCase, CastCase, Counted};
use crate::workers::Flat;
use crate::worst::Worst;

/// Options of `rxo-lab bench instructions`.
#[derive(Args, Debug)]
pub struct InstructionsArgs {
    /// Keep the new counts instead of comparing them.
    #[arg(long)]
    update: bool,
    /// Also print the stages that the instructions belong to.
    #[arg(long)]
    stages: bool,
    /// Simulate caches, and print the misses beside the instructions. Nothing is compared or kept.
    #[arg(long, conflicts_with_all = ["update", "stages"])]
    cache: bool,
    /// Only these workloads or cases of ACK offload.
    #[arg(long, value_delimiter = ',', value_parser = subject)]
    only: Vec<Subject>,
}

/// Options of the process that runs under callgrind.
#[derive(Args, Debug)]
pub struct CountedArgs {
    /// The workload, or the case of ACK offload.
    #[arg(value_parser = subject)]
    subject: Subject,
    /// The number of passes; a sampling profiler needs many.
    #[arg(long, default_value_t = 1)]
    passes: u32,
}

/// A counted case.
#[derive(Clone, Copy, Debug)]
enum Subject {
    /// Packets through the engine.
    Workload(Workload),
    /// Packets through the engine, in pool buffers that are returned.
    Pooled(Workload),
    /// Packets through the engine, with each delivery moved out of it.
    Owned(Workload),
    /// W8 with pure ACKs aggregated; the text names the variant.
    Aggregated(&'static str, Acks),
    /// Expansion or splitting of ACKs.
    Acks(Case),
    /// Work that must not grow with the held flows or with the poll.
    Bound(Bound),
    /// Frames chosen to cost as much as possible.
    Worst(Worst),
    /// Frames through several workers, each on a thread.
    Flat(Flat),
    /// Segments through the TCP endpoint.
    Tcp(Counted),
    /// ACKs that a sending host receives.
    HostAcks(AckCase),
    /// ACKs that the sender of a group receives.
    Cast(CastCase),
}

impl Subject {
    fn all() -> Vec<Self> {
        let workloads = WORKLOADS.into_iter().map(Self::Workload);
        let pooled = POOLED.map(Self::Pooled);
        let owned = POOLED.map(Self::Owned);
        let aggregated = PURE_ACKS.map(|(variant, acks)| Self::Aggregated(variant, acks));
        let acks = acks::cases().into_iter().map(Self::Acks);
        let tcp = Counted::ALL.map(Self::Tcp);
        let bounds = Bound::ALL.map(Self::Bound);
        let host_acks = AckCase::ALL.map(Self::HostAcks);
        let engine = workloads.chain(pooled).chain(owned).chain(aggregated).chain(acks);
        let cast = CastCase::ALL.map(Self::Cast);
        let flat = Flat::ALL.map(Self::Flat);
        let bounds = bounds.into_iter().chain(Worst::all().map(Self::Worst));
        engine.chain(bounds).chain(flat).chain(tcp).chain(host_acks).chain(cast).collect()
    }

    fn name(self) -> String {
        match self {
            Self::Workload(workload) => workload.name().to_owned(),
            Self::Pooled(workload) => format!("{}-pool", workload.name()),
            Self::Owned(workload) => format!("{}-owned", workload.name()),
            Self::Aggregated(variant, _) => format!("W8, {variant}"),
            Self::Acks(case) => case.name(),
            Self::Bound(bound) => bound.name(),
            Self::Worst(worst) => worst.name(),
            Self::Flat(flat) => flat.name(),
            Self::Tcp(counted) => counted.name.to_owned(),
            Self::HostAcks(case) => case.name.to_owned(),
            Self::Cast(case) => case.name.to_owned(),
        }
    }
}

impl Subject {
    /// Returns the counted instructions of a profile: all of them, or for `HostAcks` those inside the host's
    /// receive function.
    fn instructions(self, profile: &str) -> Option<f64> {
        if !matches!(self, Self::HostAcks(_)) {
            return total(profile);
        }
        let receives = |name: &str| name.contains("rxo_host") && name.ends_with("::receive");
        let sum = stages::inclusive(profile, receives);
        (sum > 0.0).then_some(sum)
    }
}

/// Workloads that are also counted with pool buffers: long aggregates and single frames.
const POOLED: [Workload; 2] = [Workload::W1, Workload::W2];

/// Returns the workload or case `name`.
fn subject(name: &str) -> Result<Subject, String> {
    let known = Subject::all().into_iter().find(|subject| subject.name() == name);
    known.map_or_else(|| workload(name).map(Subject::Workload), Ok)
}

/// Instructions by name: per packet of a workload, per ACK or segment of a case.
type Counts = BTreeMap<String, f64>;

/// Growth that is not a regression: compilers vary this much.
const TOLERATED_GROWTH: f64 = 0.02;

/// Counts all subjects, then compares the counts with the kept ones or keeps the new ones.
pub(crate) fn run(args: &InstructionsArgs) -> Result<()> {
    let subjects = if args.only.is_empty() { Subject::all() } else { args.only.clone() };
    let mut counts = Counts::new();
    if args.cache {
        return cache::print(profiles(&subjects, &cache::SIMULATION));
    }
    for (subject, profile) in profiles(&subjects, &[]) {
        let (profile, items) = profile?;
        let total = subject.instructions(&profile).context("a profile without a total")?;
        if args.stages {
            println!("{}\n{}", subject.name(), stages::table(&profile, items));
        }
        counts.insert(subject.name(), total / items);
    }
    let kept_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json");
    if args.update {
        return keep(&counts, &kept_in);
    }
    let (text, grown) = compare(&kept(&kept_in)?, &counts);
    print!("{text}");
    ensure!(
        grown.is_empty(),
        "more than {:.0} % more instructions on {}: make the engine do less, or keep the new \
         counts with `cargo xtask bench instructions --update`",
        TOLERATED_GROWTH * 100.0,
        grown.join(", ")
    );
    Ok(())
}

/// Runs one workload or case; callgrind counts inside [`counted_pass`].
pub(crate) fn run_counted(args: &CountedArgs) -> Result<()> {
    let each = args.passes as usize;
    let items = match args.subject {
        Subject::Workload(workload) => {
            let course = Course::new(workload);
            each * run_contender(Rxo::borrowed(headers(&course), None), args.passes)
        }
        Subject::Pooled(workload) => {
            let course = Course::new(workload);
            each * run_contender(Rxo::pooled(headers(&course)), args.passes)
        }
        Subject::Owned(workload) => {
            let course = Course::new(workload);
            each * run_contender(Rxo::owned(headers(&course)), args.passes)
        }
        Subject::Aggregated(_, acks) => {
            let course = Course::new(Workload::W8);
            each * run_contender(Rxo::with_acks(headers(&course), acks), args.passes)
        }
        Subject::Acks(case) => each * run_case(case, args.passes),
        Subject::Bound(bound) => each * bound.run(args.passes, |pass| counted_pass(pass)),
        Subject::Worst(worst) => worst.run(args.passes, |pass| counted_pass(pass)),
        Subject::Flat(flat) => flat.run(args.passes, |run| counted_pass(run)),
        Subject::Tcp(counted) => counted.run(args.passes, |turn| counted_pass(turn)),
        Subject::HostAcks(case) => case.run(args.passes, |turn| counted_pass(turn)),
        Subject::Cast(case) => case.run(args.passes, |acks| counted_pass(acks)),
    };
    println!("{items}");
    Ok(())
}

const fn headers(course: &Course) -> &Traffic {
    course.traffic(Checksum::Trusted)
}

/// Runs `passes` passes. Returns the number of packets in each pass.
fn run_contender(mut contender: impl Contender, passes: u32) -> usize {
    // The first pass initializes lazily created state; all later passes are alike.
    contender.prepare();
    contender.pass();
    for _ in 0..passes {
        contender.prepare();
        counted_pass(|| contender.pass());
    }
    contender.outcome().frames as usize
}

fn run_case(case: Case, passes: u32) -> usize {
    let mut work = case.work();
    work.prepare();
    work.pass();
    for _ in 0..passes {
        work.prepare();
        counted_pass(|| work.pass());
    }
    work.items()
}

#[inline(never)]
fn counted_pass(pass: impl FnOnce()) {
    pass();
}

/// Profiles `subjects`, and returns the result of [`profile`] for each, in their order. Runs as many at once
/// as there are cores, which does not change the counts.
fn profiles(subjects: &[Subject], simulation: &[&str]) -> Vec<(Subject, Result<(String, f64)>)> {
    let next = AtomicUsize::new(0);
    let work = || {
        let take = || {
            let at = next.fetch_add(1, Ordering::Relaxed);
            subjects.get(at).map(|subject| (at, profile(*subject, simulation)))
        };
        std::iter::from_fn(take).collect::<Vec<_>>()
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let mut done: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    subjects.iter().copied().zip(done.into_iter().map(|(_, profile)| profile)).collect()
}

/// Runs `subject` under callgrind with these options of its caches. Returns the profile, and its number of
/// packets or ACKs.
fn profile(subject: Subject, simulation: &[&str]) -> Result<(String, f64)> {
    let name = subject.name();
    let folder = Folder::new("callgrind")?;
    let out = folder.file("profile");
    let output = rxo_peers::callgrind("counted_pass", &out)
        .args(simulation)
        .arg(std::env::current_exe().context("the path of this program")?)
        .args(["bench", "counted", &name])
        .output()
        .context("valgrind does not start: install it (apt-get install valgrind)")?;
    let profile = std::fs::read_to_string(&out).unwrap_or_default();
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} under valgrind failed ({}): {stderr}", output.status);
    let items: f64 = String::from_utf8_lossy(&output.stdout).trim().parse()?;
    let has_counted = total(&profile).is_some_and(|total| total > 0.0);
    ensure!(has_counted, "callgrind counted nothing for {name}: {stderr}");
    Ok((profile, items))
}

/// Returns the instructions in the total of a callgrind profile; `None` if there is none.
fn total(profile: &str) -> Option<f64> {
    let line = profile.lines().find_map(|line| line.strip_prefix("totals:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn kept(path: &Path) -> Result<Counts> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{}: make it with `--update`", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{}", path.display()))
}

/// Writes `counts` into the file. Workloads that were not counted keep their old counts.
fn keep(counts: &Counts, path: &Path) -> Result<()> {
    let mut all = if path.exists() { kept(path)? } else { Counts::new() };
    let rounded = |count: f64| (count * 10.0).round() / 10.0;
    all.extend(counts.iter().map(|(name, count)| (name.clone(), rounded(*count))));
    std::fs::write(path, serde_json::to_string_pretty(&all)? + "\n")
        .with_context(|| format!("{}", path.display()))?;
    println!("{} counts kept in {}", counts.len(), path.display());
    Ok(())
}

/// Returns a table of both counts, and the names of workloads that grew too much.
fn compare(kept: &Counts, now: &Counts) -> (String, Vec<String>) {
    let mut text = format!("{:<21} {:>9} {:>9} {:>8}\n", "workload", "kept", "now", "change");
    let mut grown = Vec::new();
    for (name, now) in now {
        let before = kept.get(name).copied().unwrap_or(f64::INFINITY);
        let growth = now / before - 1.0;
        if growth > TOLERATED_GROWTH {
            grown.push(name.clone());
        }
        // Adding zero turns a negative zero from rounding into a positive one.
        let percent = (growth * 1_000.0).round() / 10.0 + 0.0;
        text += &format!("{name:<21} {before:>9.1} {now:>9.1} {percent:>+7.1}%\n");
    }
    (text, grown)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Counts, Flat, Worst, compare, kept, total};

    fn counts(count: f64) -> Counts {
        Counts::from([("W1".to_owned(), count)])
    }

    #[test]
    fn the_total_is_read_from_a_profile() {
        assert_eq!(total("fn=(1)\n3 400\ntotals: 12345\n"), Some(12_345.0));
        assert_eq!(total("no such line"), None);
    }

    #[test]
    fn only_growth_beyond_the_tolerance_is_a_regression() {
        assert!(compare(&counts(100.0), &counts(101.9)).1.is_empty());
        assert!(compare(&counts(100.0), &counts(50.0)).1.is_empty());
        assert_eq!(compare(&counts(100.0), &counts(102.1)).1, ["W1"]);
    }

    /// Parses a table row whose first cell lists names in code, and whose last cell lists a count for each
    /// name.
    fn row(line: &str) -> Vec<(String, f64)> {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [names, _, counts] = cells[..] else { return Vec::new() };
        let names = names.split(", ").filter_map(|name| name.strip_prefix('`')?.strip_suffix('`'));
        let counts = counts.split(", ").filter_map(|count| count.replace(',', "").parse().ok());
        names.map(str::to_owned).zip(counts).collect()
    }

    /// A worker costs as much beside fifteen others as alone.
    #[test]
    fn a_frame_costs_the_same_with_any_number_of_workers() {
        let kept = kept(&Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json")).unwrap();
        let alone = kept[&Flat(1).name()];
        for flat in Flat::ALL {
            let count = kept[&flat.name()];
            assert!((count / alone - 1.0).abs() < 0.03, "{}: {count}, alone {alone}", flat.name());
        }
    }

    #[test]
    fn no_adversary_makes_frames_ten_times_as_expensive() {
        let kept = kept(&Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json")).unwrap();
        let readme = include_str!("../README.md").replace(',', "");
        for worst in Worst::all() {
            let (count, ordinary) = (kept[&worst.name()], kept[&worst.beside().name()]);
            assert!(count < 10.0 * ordinary, "{}: {count}, beside {ordinary}", worst.name());
            assert!(readme.contains(&format!(" → {count:.0} ")), "{}: {count}", worst.name());
        }
    }

    #[test]
    fn the_counts_in_the_readme_are_those_that_are_kept() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let kept = kept(&folder.join("instructions.json")).unwrap();
        let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
        let mut checked = 0;
        for (name, said) in readme.lines().flat_map(row) {
            let Some(count) = kept.get(&name) else { continue };
            assert!((said / count - 1.0).abs() < 0.02, "{name}: README {said}, kept {count}");
            checked += 1;
        }
        assert!(checked >= 18, "{checked} counts in the table of the endpoint");
    }
}
