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
use crate::contender::{Contender, Rxo};
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
    #[arg(long, value_delimiter = ',', value_parser = known)]
    only: Vec<String>,
}

/// Options of the process that runs under callgrind.
#[derive(Args, Debug)]
pub struct CountedArgs {
    /// The workload, or the case of ACK offload.
    #[arg(value_parser = known)]
    subject: String,
    /// The number of passes; a sampling profiler needs many.
    #[arg(long, default_value_t = 1)]
    passes: u32,
}

/// A counted case.
struct Subject {
    name: String,
    /// Runs so many passes inside [`counted_pass`]. Returns the number of packets, ACKs or segments in all of them.
    run: Box<dyn Fn(u32) -> usize>,
}

impl Subject {
    fn new(name: impl Into<String>, run: impl Fn(u32) -> usize + 'static) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }

    fn all() -> Vec<Self> {
        let workloads = WORKLOADS.map(|it| {
            Self::new(it.name(), move |passes| {
                run_contender(Rxo::borrowed(headers(&Course::new(it)), None), passes)
            })
        });
        let pooled = POOLED.map(|it| {
            Self::new(format!("{}-pool", it.name()), move |passes| {
                run_contender(Rxo::pooled(headers(&Course::new(it))), passes)
            })
        });
        let owned = POOLED.map(|it| {
            Self::new(format!("{}-owned", it.name()), move |passes| {
                run_contender(Rxo::owned(headers(&Course::new(it))), passes)
            })
        });
        let aggregated = PURE_ACKS.map(|(variant, acks)| {
            Self::new(format!("W8, {variant}"), move |passes| {
                run_contender(Rxo::with_acks(headers(&Course::new(Workload::W8)), acks), passes)
            })
        });
        let acks =
            acks::cases().into_iter().map(|it| Self::new(it.name(), move |n| run_case(it, n)));
        let bounds = Bound::ALL.map(|it| {
            let run = move |n| n as usize * it.run(n, |pass| counted_pass(pass));
            Self::new(it.name(), run)
        });
        let worst = Worst::all()
            .map(|it| Self::new(it.name(), move |n| it.run(n, |pass| counted_pass(pass))));
        let flat =
            Flat::ALL.map(|it| Self::new(it.name(), move |n| it.run(n, |run| counted_pass(run))));
        let tcp = Counted::ALL
            .map(|it| Self::new(it.name, move |n| it.run(n, |turn| counted_pass(turn))));
        let host_acks = AckCase::ALL
            .map(|it| Self::new(it.name, move |n| it.run(n, |turn| counted_pass(turn))));
        let cast = CastCase::ALL
            .map(|it| Self::new(it.name, move |n| it.run(n, |acks| counted_pass(acks))));
        let engine = workloads.into_iter().chain(pooled).chain(owned).chain(aggregated).chain(acks);
        engine
            .chain(bounds)
            .chain(worst)
            .chain(flat)
            .chain(tcp)
            .chain(host_acks)
            .chain(cast)
            .collect()
    }
}

/// Returns the counted instructions of the profile of `subject`: all of them, or for ACKs of hosts those inside the
/// host's receive function.
fn instructions(subject: &str, profile: &str) -> Option<f64> {
    if !subject.starts_with("host-acks") {
        return total(profile);
    }
    let receives = |name: &str| name.contains("rxo_host") && name.ends_with("::receive");
    let sum = stages::inclusive(profile, receives);
    (sum > 0.0).then_some(sum)
}

/// Workloads that are also counted with pool buffers: long aggregates and single frames.
const POOLED: [Workload; 2] = [Workload::W1, Workload::W2];

/// Returns the name of the workload or case `name`.
fn known(name: &str) -> Result<String, String> {
    let is_known = Subject::all().iter().any(|subject| subject.name == name);
    if is_known { Ok(name.to_owned()) } else { workload(name).map(|it| it.name().to_owned()) }
}

/// Instructions by name: per packet of a workload, per ACK or segment of a case.
type Counts = BTreeMap<String, f64>;

/// Growth that is not a regression: compilers vary this much.
const TOLERATED_GROWTH: f64 = 0.02;

/// Counts all subjects, then compares the counts with the kept ones or keeps the new ones.
pub(crate) fn run(args: &InstructionsArgs) -> Result<()> {
    let mut subjects = args.only.clone();
    if subjects.is_empty() {
        subjects.extend(Subject::all().into_iter().map(|subject| subject.name));
    }
    let mut counts = Counts::new();
    if args.cache {
        return cache::print(profiles(&subjects, &cache::SIMULATION));
    }
    for (subject, profile) in profiles(&subjects, &[]) {
        let (profile, items) = profile?;
        let total = instructions(&subject, &profile).context("a profile without a total")?;
        if args.stages {
            println!("{subject}\n{}", stages::table(&profile, items));
        }
        counts.insert(subject, total / items);
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
    let subject = Subject::all().into_iter().find(|subject| subject.name == args.subject);
    println!("{}", (subject.context("there is no such case")?.run)(args.passes));
    Ok(())
}

const fn headers(course: &Course) -> &Traffic {
    course.traffic(Checksum::Trusted)
}

/// Runs `passes` passes. Returns the number of packets in all of them.
fn run_contender(mut contender: impl Contender, passes: u32) -> usize {
    // The first pass initializes lazily created state; all later passes are alike.
    contender.prepare();
    contender.pass();
    for _ in 0..passes {
        contender.prepare();
        counted_pass(|| contender.pass());
    }
    contender.outcome().frames as usize * passes as usize
}

fn run_case(case: Case, passes: u32) -> usize {
    let mut work = case.work();
    work.prepare();
    work.pass();
    for _ in 0..passes {
        work.prepare();
        counted_pass(|| work.pass());
    }
    work.items() * passes as usize
}

#[inline(never)]
fn counted_pass(pass: impl FnOnce()) {
    pass();
}

/// Profiles `subjects`, and returns the result of [`profile`] for each, in their order. Runs as many at once
/// as there are cores, which does not change the counts.
fn profiles(subjects: &[String], simulation: &[&str]) -> Vec<(String, Result<(String, f64)>)> {
    let next = AtomicUsize::new(0);
    let work = || {
        let take = || {
            let at = next.fetch_add(1, Ordering::Relaxed);
            subjects.get(at).map(|subject| (at, profile(subject, simulation)))
        };
        std::iter::from_fn(take).collect::<Vec<_>>()
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let mut done: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    subjects.iter().cloned().zip(done.into_iter().map(|(_, profile)| profile)).collect()
}

/// Runs `subject` under callgrind with these options of its caches. Returns the profile, and its number of
/// packets or ACKs.
fn profile(name: &str, simulation: &[&str]) -> Result<(String, f64)> {
    let folder = Folder::new("callgrind")?;
    let out = folder.file("profile");
    let output = rxo_peers::callgrind("counted_pass", &out)
        .args(simulation)
        .arg(std::env::current_exe().context("the path of this program")?)
        .args(["bench", "counted", name])
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
