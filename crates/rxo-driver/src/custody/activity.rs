//! Activity: the states of a process's threads, as `/proc` reports them.
//!
//! This module is separate so that a silent process that gets no processor time can be distinguished from one
//! that hangs.

use std::ffi::OsString;
use std::fs;
use std::time::Duration;

/// A sample of a process's threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Activity {
    threads: Vec<Thread>,
}

/// A sample of a thread: its state letter in `/proc/PID/task/TID/stat`, and the processor time that it has used so
/// far, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Thread {
    id: OsString,
    state: char,
    ran_ns: u64,
}

impl Activity {
    /// Reads the states of all threads of `process`. `None` if the process has ended, or `/proc` is not readable.
    /// All threads count, because several workers are threads: the first thread of the process only waits for
    /// them.
    pub(super) fn of(process: u32) -> Option<Self> {
        let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?;
        let read = |thread: fs::DirEntry| {
            let file = |name: &str| fs::read_to_string(thread.path().join(name)).ok();
            Thread::parse(thread.file_name(), &file("stat")?, &file("schedstat")?)
        };
        // A thread may end meanwhile.
        let threads: Vec<_> = threads.flatten().filter_map(read).collect();
        (!threads.is_empty()).then_some(Self { threads })
    }

    /// Returns for how much of the time `passed` since the sample `before` all threads together could have
    /// worked. A thread that is runnable could do so only with a processor, and others may wait for it: on a busy
    /// machine, the time is that of the runnable thread that had the processor least.
    pub(super) fn worked_since(&self, before: &Self, passed: Duration) -> Duration {
        let ran = |thread: &Thread| {
            let before = before.threads.iter().find(|before| before.id == thread.id);
            let before = before.map_or(0, |before| before.ran_ns);
            Duration::from_nanos(thread.ran_ns.saturating_sub(before))
        };
        let runnable = self.threads.iter().filter(|thread| thread.state == 'R');
        runnable.map(ran).fold(passed, Duration::min)
    }

    /// Returns `true` if a signal or a debugger has stopped the process.
    pub(super) fn is_stopped(&self) -> bool {
        self.has('T') || self.has('t')
    }

    /// Returns `true` if a thread is in a system call that no signal interrupts, not even SIGKILL.
    pub(super) fn is_uninterruptible(&self) -> bool {
        self.has('D')
    }

    fn has(&self, state: char) -> bool {
        self.threads.iter().any(|thread| thread.state == state)
    }

    /// Returns the processor time that the process has used, in nanoseconds.
    pub(super) fn ran_ns(&self) -> u64 {
        self.threads.iter().map(|thread| thread.ran_ns).sum()
    }

    /// Returns the state of the process in words, for a message to the user.
    pub(super) fn words(&self) -> &'static str {
        match self {
            _ if self.is_stopped() => "it is stopped",
            _ if self.is_uninterruptible() => "it waits in a call that no signal ends",
            _ if self.has('R') => "it is busy",
            _ => "it waits in a call",
        }
    }

    /// Returns a sample of threads with these states, each with the processor time that it has used.
    #[cfg(test)]
    pub(super) fn with_threads(threads: &[(char, u64)]) -> Self {
        let thread = |(id, &(state, ran_ns)): (usize, &(char, u64))| Thread {
            id: id.to_string().into(),
            state,
            ran_ns,
        };
        Self { threads: threads.iter().enumerate().map(thread).collect() }
    }
}

impl Thread {
    /// Parses the contents of a thread's files `stat` and `schedstat`. Returns `None` if they are invalid. The
    /// state follows the thread's name, which is in brackets and may contain any character, even `)`, so it is
    /// searched for after the last `)`.
    fn parse(id: OsString, stat: &str, schedule: &str) -> Option<Self> {
        let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
        Some(Self { id, state, ran_ns: schedule.split_whitespace().next()?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the nanoseconds for which threads with these states could have worked in 70 ns, before which each
    /// had run for 100.
    fn worked(threads: &[(char, u64)]) -> u128 {
        let before: Vec<_> = threads.iter().map(|(state, _)| (*state, 100)).collect();
        let [before, now] = [&before, threads].map(Activity::with_threads);
        now.worked_since(&before, Duration::from_nanos(70)).as_nanos()
    }

    #[test]
    fn a_thread_without_a_processor_is_told_from_one_that_hangs() {
        assert_eq!(worked(&[('R', 100)]), 0);
        assert_eq!((worked(&[('R', 107)]), worked(&[('R', 200)])), (7, 70), "it spins");
        assert_eq!((worked(&[('S', 100)]), worked(&[('T', 100)])), (70, 70));
    }

    #[test]
    fn a_worker_without_a_processor_is_seen_beside_others() {
        assert_eq!(worked(&[('S', 100), ('R', 200), ('R', 103)]), 3);
        assert_eq!(
            worked(&[('S', 100), ('R', 200), ('S', 100)]),
            70,
            "one hangs beside one that works"
        );
    }

    #[test]
    fn the_thread_that_explains_the_silence_is_named() {
        let at = |states: &[char]| {
            Activity::with_threads(&states.iter().map(|state| (*state, 5)).collect::<Vec<_>>())
        };
        assert!(at(&['S', 'D', 'R']).is_uninterruptible() && !at(&['S', 'R']).is_uninterruptible());
        let words = [['T', 'T'], ['S', 'R'], ['S', 'S']].map(|states| at(&states).words());
        assert_eq!(words, ["it is stopped", "it is busy", "it waits in a call"]);
        assert_eq!(at(&['S', 'R']).ran_ns(), 10);
    }

    #[test]
    fn a_state_follows_any_name() {
        let parse = |stat, schedule| Thread::parse("7".into(), stat, schedule);
        let thread = parse("7 (a) b) R 1 7", "100 5 9\n").unwrap();
        assert_eq!((thread.state, thread.ran_ns), ('R', 100));
        assert_eq!(parse("", ""), None);
    }

    #[test]
    fn this_process_is_active() {
        assert!(Activity::of(std::process::id()).is_some());
        assert_eq!(Activity::of(u32::MAX), None);
    }
}
