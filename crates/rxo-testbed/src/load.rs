//! Measures the other load of the machine: the processor time of other processes, and the time that a
//! hypervisor takes.
//!
//! This module counts the load that disturbs an experiment, whereas the [meter](crate::CpuMeter) counts the
//! cost of the experiment. All descendants of this process, such as emulated machines and programs that are
//! measured, are part of the experiment. Two independent sums are compared, and the larger one is used. The
//! first is the time of all visible processes. The second is the time in which the cores were not idle, minus
//! the time of this process and its descendants, kernel threads, interrupts and the hypervisor. This sum also
//! includes invisible processes (in another PID namespace).
//!
//! A process may be confined to some cores (a cpuset), or to the time of some cores (a quota). Only the cores
//! that this process may use are counted. If these are fewer cores than the machine has, only the second sum is
//! used, because it is unknown on which cores other processes ran. Under a quota, the visible processes are
//! assumed to share the quota, and the rest to be spread evenly.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, iter};

use crate::error::{Context, LabError, Result};
use crate::sys;

/// The processor times of the machine and its processes at one instant.
#[derive(Clone, Copy, Debug)]
pub struct MachineReading {
    at: Instant,
    totals: Totals,
    /// The time of this process and of its descendants.
    own: Duration,
    /// The time of the kernel's threads, which work for all processes.
    kernel: Duration,
    /// The time of all other visible processes.
    others: Duration,
}

/// The use of the machine's processor time between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineUse {
    /// The number of cores whose time this process can use: all cores of the machine, or as many as a cpuset
    /// or a quota permits.
    pub cores: u32,
    /// The time between the two readings.
    pub elapsed: Duration,
    /// The processor time of other processes, on all `cores` together.
    pub others: Duration,
    /// The time in which a core had work but the hypervisor ran something else, on all `cores` together.
    pub stolen: Duration,
}

/// The sums of `/proc/stat` over the cores that this process may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    cores: u32,
    /// `true` if the machine has more cores than this process may use.
    is_part: bool,
    /// The number of cores whose time the quota permits this process to use; at most `cores`.
    quota: u32,
    /// The idle time of the cores that this process may use, which includes waiting for devices.
    idle: Duration,
    interrupts: Duration,
    stolen: Duration,
}

impl MachineReading {
    /// Reads the processor times of the machine and of all visible processes. Takes some microseconds per
    /// process, and allocates.
    ///
    /// # Errors
    /// If `/proc` cannot be read or is not the `/proc` of Linux.
    pub fn now() -> Result<Self> {
        let own = sys::process_cpu_time().context(|| "cannot read the processor time".into())?;
        let stat = fs::read_to_string(STAT).context(|| format!("cannot read {STAT}"))?;
        let status = fs::read_to_string(STATUS).context(|| format!("cannot read {STATUS}"))?;
        let quota = thread::available_parallelism().map_or(usize::MAX, usize::from);
        let at = Instant::now();
        let entries = fs::read_dir("/proc").context(|| "cannot read /proc".into())?;
        // Not `std::process::id`: /proc may count processes in another namespace.
        let this = fs::read_link("/proc/self").context(|| "cannot read /proc/self".into())?;
        let this = this.to_str().and_then(|it| it.parse().ok()).unwrap_or_default();
        let lines =
            entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_number));
        // A process may end before it is read; its time is then part of its parent's.
        let lines = lines.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
        let totals = Totals::of(&stat, allowed(&status), quota).ok_or_else(|| {
            LabError::Unsupported(format!("{STAT} has no line of a core that {STATUS} allows"))
        })?;
        Ok(Self::of(at, totals, (this, own), lines))
    }

    fn of(
        at: Instant,
        totals: Totals,
        (this, mut own): (u32, Duration),
        lines: impl Iterator<Item = String>,
    ) -> Self {
        let (mut kernel, mut others) = (Duration::ZERO, Duration::ZERO);
        let processes: HashMap<_, _> =
            lines.filter_map(|line| Process::of(&line)).map(|it| (it.id, it)).collect();
        for process in processes.values() {
            if process.id == this {
                own += process.ended;
            } else if is_below(this, process, &processes) {
                own += process.time + process.ended;
            } else {
                let time = process.time + process.ended;
                *(if process.is_kernel { &mut kernel } else { &mut others }) += time;
            }
        }
        Self { at, totals, own, kernel, others }
    }

    /// Returns the use of processor time since the reading `earlier`. Interrupts count as used by this
    /// process, because their cause is unknown.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> MachineUse {
        let (now, then) = (&self.totals, &earlier.totals);
        let elapsed = self.at.saturating_duration_since(earlier.at);
        let stolen = now.stolen.saturating_sub(then.stolen);
        let busy = (elapsed * now.cores)
            .saturating_sub(now.idle.saturating_sub(then.idle))
            .saturating_sub(stolen);
        let unexplained = busy
            .saturating_sub(now.interrupts.saturating_sub(then.interrupts))
            .saturating_sub(self.own.saturating_sub(earlier.own))
            .saturating_sub(self.kernel.saturating_sub(earlier.kernel));
        // A process that ends between the reading of its parent and its own is counted twice, or not at all. The sum is
        // limited to what the machine has left.
        let left = busy.saturating_sub(self.own.saturating_sub(earlier.own));
        let seen = self.others.saturating_sub(earlier.others).min(left);
        let seen = if now.is_part { Duration::ZERO } else { seen };
        let share = |time: Duration| time * now.quota / now.cores.max(1);
        let others = seen.max(share(unexplained));
        MachineUse { cores: now.quota, elapsed, others, stolen: share(stolen) }
    }
}

impl Totals {
    /// Computes the sums of the lines of `stat` for the cores in `allowed`, or for all cores if `allowed` is
    /// `None`. `quota` is the number of cores whose time the process may use. Returns `None` if `stat` is
    /// invalid.
    fn of(stat: &str, allowed: Option<&str>, quota: usize) -> Option<Self> {
        let mut totals = Self::default();
        for line in stat.lines() {
            let Some((core, columns)) = line.strip_prefix("cpu").and_then(|it| it.split_once(' '))
            else {
                continue;
            };
            // The line without a number is the total.
            let Ok(core) = core.parse() else { continue };
            if allowed.is_some_and(|list| !is_in(list, core)) {
                totals.is_part = true;
                continue;
            }
            totals.add(columns)?;
        }
        totals.quota = totals.cores.min(u32::try_from(quota).unwrap_or(u32::MAX));
        (totals.quota > 0).then_some(totals)
    }

    /// Adds the times of one core, given by the columns of its line; `None` if the line is invalid.
    fn add(&mut self, columns: &str) -> Option<()> {
        let columns = columns.split_whitespace().map(|column| column.parse::<u64>().ok());
        let columns: Vec<u64> = columns.collect::<Option<_>>()?;
        // user nice system idle iowait irq softirq steal; old kernels have fewer.
        let of =
            |places: &[usize]| ticks(places.iter().filter_map(|&place| columns.get(place)).sum());
        self.cores += 1;
        self.idle += of(&[3, 4]);
        self.interrupts += of(&[5, 6]);
        self.stolen += of(&[7]);
        Some(())
    }
}

/// Returns the cores that a process may use, as `/proc/<process>/status` lists them: `0-3,8`. `None` if
/// `status` does not list the cores.
fn allowed(status: &str) -> Option<&str> {
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(str::trim)
}

/// Returns `true` if the core list `list` contains `core`.
fn is_in(list: &str, core: u32) -> bool {
    list.split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        matches!((first.parse(), last.parse()), (Ok(first), Ok(last)) if (first..=last).contains(&core))
    })
}

/// The contents of one line of `/proc/<process>/stat`.
struct Process {
    id: u32,
    parent: u32,
    is_kernel: bool,
    /// The processor time of the process itself.
    time: Duration,
    /// The time of the process's children that have ended, so that no time is lost when a process ends.
    ended: Duration,
}

/// Returns `true` if `process` is a descendant of the process `this`.
fn is_below(this: u32, process: &Process, processes: &HashMap<u32, Process>) -> bool {
    let parent = |below: &&Process| processes.get(&below.parent);
    // Processes are read one after another, so reused numbers may form a loop: the length is limited.
    let chain = iter::successors(Some(process), |below| parent(below)).take(processes.len() + 1);
    chain.into_iter().any(|above| above.parent == this)
}

fn is_number(name: &str) -> bool {
    name.bytes().all(|it| it.is_ascii_digit())
}

impl Process {
    fn of(line: &str) -> Option<Self> {
        // The name in parentheses may contain anything, parentheses too.
        let id = line.split_once(' ')?.0.parse().ok()?;
        let columns: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |place: usize| columns.get(place)?.parse::<u64>().ok();
        // user and system
        let time = |places: [usize; 2]| Some(ticks(number(places[0])? + number(places[1])?));
        Some(Self {
            id,
            parent: u32::try_from(number(1)?).ok()?,
            is_kernel: number(6)? & KERNEL_THREAD != 0,
            time: time([11, 12])?,
            ended: time([13, 14])?,
        })
    }
}

/// Returns the duration of `count` hundredths of a second. The kernel reports times in this unit, independently
/// of its own tick rate.
fn ticks(count: u64) -> Duration {
    Duration::from_millis(count.saturating_mul(10))
}

const STAT: &str = "/proc/stat";
const STATUS: &str = "/proc/self/status";
/// The flag `PF_KTHREAD`, which is set if a process is a kernel thread.
const KERNEL_THREAD: u64 = 0x0020_0000;

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    /// The process identifier of this process in the tests.
    const THIS: u32 = 50;

    /// The beginning of virtual time; any instant does.
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

    /// Returns a reading of two cores at `seconds`. `figures` are the idle time, the time that a hypervisor
    /// took, and this process's own time, in hundredths of a second.
    fn reading(seconds: u64, figures: [u64; 3], processes: &[(&str, u64, u64)]) -> MachineReading {
        confined(seconds, figures, processes, (None, 2))
    }

    /// Returns the reading of a process that may use the cores `allowed`, and the time of `quota` of them.
    fn confined(
        seconds: u64,
        [idle, stolen, own]: [u64; 3],
        processes: &[(&str, u64, u64)],
        (allowed, quota): (Option<&str>, usize),
    ) -> MachineReading {
        let stat = format!(
            "cpu  7 7 7 9 0 9 0 9 0 0\ncpu0 7 7 7 {idle} 0 {interrupts} 0 {stolen} 0 0\n\
             cpu1 7 7 7 0 0 0 0 0 0 0\nintr 5\n",
            interrupts = 10 * seconds
        );
        let lines = processes.iter().zip(100..).map(|((name, own, ended), id)| {
            let flags = if name.starts_with('k') { KERNEL_THREAD } else { 4_194_304 };
            // `rxo` is this process, the parent of `qemu`, which is the parent of `vcpu`.
            let (id, parent) = match *name {
                "rxo" => (THIS, 1),
                "qemu" => (THIS + 1, THIS),
                "vcpu" => (THIS + 2, THIS + 1),
                _ => (id, 1),
            };
            format!(
                "{id} ({name}) S {parent} 17 17 0 -1 {flags} 9 9 9 9 {own} 0 0 {ended} 20 0 1 0 5"
            )
        });
        let at = *BEGIN + Duration::from_secs(seconds);
        let totals = Totals::of(&stat, allowed, quota).unwrap();
        MachineReading::of(at, totals, (THIS, ticks(own)), lines)
    }

    fn used(before: MachineReading, after: MachineReading) -> (u64, u64) {
        let MachineUse { cores, elapsed, others, stolen } = after.since(&before);
        assert_eq!((cores, elapsed), (2, Duration::from_secs(10)));
        (others.as_millis() as u64 / 10, stolen.as_millis() as u64 / 10)
    }

    #[test]
    fn what_this_process_and_the_kernel_do_is_no_disturbance() {
        // This process used 1,500 of 2,000 hundredths, the kernel 200, and interrupts 100.
        let before = reading(0, [0, 0, 0], &[("shell", 5, 0), ("kworker", 0, 0)]);
        let after = reading(10, [200, 0, 1_500], &[("shell", 5, 0), ("kworker", 200, 0)]);
        assert_eq!(used(before, after), (0, 0));
    }

    #[test]
    fn what_this_process_has_started_is_no_disturbance() {
        let before = reading(0, [0, 0, 0], &[("qemu", 10, 0), ("rxo", 0, 5), ("cc", 0, 0)]);
        // The 2,000 hundredths consist of 500 of this process, 300 of a child that has ended, 800 of a child
        // that runs, 200 of that child's own child, 100 of interrupts, and 100 of another process.
        let rows = [("qemu", 810, 0), ("vcpu", 200, 0), ("rxo", 500, 305), ("cc", 100, 0)];
        assert_eq!(used(before, reading(10, [0, 0, 500], &rows)), (100, 0));
    }

    #[test]
    fn a_chain_of_parents_without_an_end_is_nobodys() {
        let line = |id: u32, parent: u32| {
            format!("{id} (x) S {parent} 1 1 0 -1 0 9 9 9 9 50 0 0 0 20 0 1 0 5")
        };
        let lines = [line(8, 9), line(9, 8)].into_iter();
        let totals = Totals { cores: 2, quota: 2, ..Totals::default() };
        let read = MachineReading::of(*BEGIN, totals, (THIS, Duration::ZERO), lines);
        assert_eq!((read.own, read.others), (Duration::ZERO, ticks(100)));
    }

    #[test]
    fn other_processes_are_counted_also_when_they_end() {
        let before = reading(0, [0, 0, 0], &[("a) 1 (b", 0, 100), ("make", 10, 0), ("cc", 50, 0)]);
        // `cc` has ended: its 300 are counted for its parent `make`, 250 of them from this interval.
        let after = reading(10, [0, 0, 1_000], &[("a) 1 (b", 70, 100), ("make", 10, 300)]);
        assert_eq!(used(before, after).0, 900, "the larger: 2,000 - 100 - 1,000");
        let after = reading(10, [1_000, 0, 600], &[("a) 1 (b", 70, 100), ("make", 10, 300)]);
        assert_eq!(used(before, after).0, 320, "the larger: 70 + 250");
        let after = reading(10, [1_500, 0, 400], &[("a) 1 (b", 70, 100), ("make", 10, 300)]);
        assert_eq!(used(before, after).0, 100, "500 were not idle, 400 of them this process's");
    }

    #[test]
    fn processes_that_cannot_be_seen_are_found_by_what_is_not_idle() {
        let after = reading(10, [400, 0, 680], &[]);
        assert_eq!(used(reading(0, [0, 0, 0], &[]), after), (820, 0));
    }

    #[test]
    fn what_a_hypervisor_takes_is_nobodys_work() {
        let after = reading(10, [1_000, 300, 600], &[]);
        assert_eq!(used(reading(0, [0, 0, 0], &[]), after), (0, 300));
    }

    #[test]
    fn only_the_cores_of_a_cpuset_count() {
        // The other core is busy all the time, with a process that can be seen.
        let set = (Some("0,2-5"), 9);
        let before = confined(0, [0, 0, 0], &[("cc", 0, 0)], set);
        let used = confined(10, [300, 50, 600], &[("cc", 1_000, 0)], set).since(&before);
        let hundredths = |time: Duration| time.as_millis() / 10;
        // Its 1,000 hundredths consist of 300 idle, 50 stolen, 100 of interrupts, and 600 of this process.
        assert_eq!((used.cores, hundredths(used.others), hundredths(used.stolen)), (1, 0, 50));
        let used = confined(10, [300, 50, 400], &[("cc", 1_000, 0)], set).since(&before);
        assert_eq!(hundredths(used.others), 150);
    }

    #[test]
    fn under_a_quota_processes_that_can_be_seen_share_it() {
        let quota = (None, 1);
        let before = confined(0, [0, 0, 0], &[("cc", 0, 0)], quota);
        let hundredths = |time: Duration| time.as_millis() / 10;
        let used = confined(10, [900, 0, 900], &[("cc", 100, 0)], quota).since(&before);
        assert_eq!((used.cores, hundredths(used.others)), (1, 100));
        // Invisible work runs on both cores.
        let used = confined(10, [900, 40, 560], &[("cc", 0, 0)], quota).since(&before);
        assert_eq!((hundredths(used.others), hundredths(used.stolen)), (200, 20));
    }

    #[test]
    fn lists_of_cores_are_read() {
        let status = "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-1,8,10-11\n";
        let list = allowed(status).unwrap();
        let cores: Vec<u32> = (0..16).filter(|&core| is_in(list, core)).collect();
        assert_eq!(cores, [0, 1, 8, 10, 11]);
        assert!(!is_in("", 0) && allowed("Name:\tx\n").is_none());
    }

    #[test]
    fn accounts_that_go_back_count_as_nothing() {
        let before = reading(0, [5, 5, 5], &[("gone", 900, 0)]);
        let after = reading(10, [1_900, 0, 1], &[]);
        assert_eq!(used(before, after), (5, 0));
    }

    #[test]
    fn this_machine_can_be_read() {
        let before = MachineReading::now().unwrap();
        assert!(before.totals.cores > 0 && before.totals.idle > Duration::ZERO);
        let used = MachineReading::now().unwrap().since(&before);
        assert!(used.others <= used.elapsed * used.cores + Duration::from_secs(10), "{used:?}");
    }

    #[test]
    fn lines_of_another_form_are_left_out() {
        assert!(Process::of("17 (name) S 1").is_none() && Process::of("").is_none());
        for stat in ["intr 1\n", "cpu  1 1\n", "cpu0 1 x\n", "cpu1 1 1\n"] {
            assert!(Totals::of(stat, Some("0"), 1).is_none(), "{stat}");
        }
    }
}
