//! Activity: the state of a process's first thread, as `/proc` reports it.
//!
//! This module is separate so that a silent thread that gets no processor time can be distinguished from a
//! thread that hangs.

use std::fs;
use std::time::Duration;

/// A sample of a process's first thread: its state letter in `/proc/PID/stat`, and the processor time that it
/// has used so far, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Activity {
    state: char,
    ran_ns: u64,
}

impl Activity {
    /// Reads the state of the first thread of `process`. `None` if the process has ended, or `/proc` is not
    /// readable.
    pub(super) fn of(process: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let schedule = fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
        Self::parse(&stat, &schedule)
    }

    /// Parses the contents of `/proc/PID/stat` and `/proc/PID/schedstat`. Returns `None` if they are invalid.
    /// The state follows the thread's name, which is in brackets and may contain any character, even `)`, so
    /// it is searched for after the last `)`.
    pub(super) fn parse(stat: &str, schedule: &str) -> Option<Self> {
        let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
        Some(Self { state, ran_ns: schedule.split_whitespace().next()?.parse().ok()? })
    }

    /// Returns for how much of the time `passed` since the sample `before` the thread could have worked. For a
    /// runnable thread, this is the processor time that it got: on a busy machine, that is less than the time
    /// `passed`.
    pub(super) fn worked_since(self, before: Self, passed: Duration) -> Duration {
        match self.state {
            'R' => passed.min(Duration::from_nanos(self.ran_ns.saturating_sub(before.ran_ns))),
            _ => passed,
        }
    }

    /// Returns `true` if a signal or a debugger has stopped the thread.
    pub(super) const fn is_stopped(self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    /// Returns `true` if the thread is in a system call that no signal interrupts, not even SIGKILL.
    pub(super) const fn is_uninterruptible(self) -> bool {
        self.state == 'D'
    }

    /// Returns the processor time that the thread has used, in nanoseconds.
    pub(super) const fn ran_ns(self) -> u64 {
        self.ran_ns
    }

    /// Returns the state of the thread in words, for a message to the user.
    pub(super) const fn words(self) -> &'static str {
        match self.state {
            _ if self.is_stopped() => "it is stopped",
            'R' => "it is busy",
            'D' => "it waits in a call that no signal ends",
            _ => "it waits in a call",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_without_a_processor_is_told_from_one_that_hangs() {
        let at = |state: &str, ran: &str| {
            Activity::parse(&format!("7 (a) b) {state} 1 7"), &format!("{ran} 5 9\n")).unwrap()
        };
        let before = at("R", "100");
        let ns = Duration::from_nanos;
        let worked = |state, ran| at(state, ran).worked_since(before, ns(70)).as_nanos();
        assert_eq!(worked("R", "100"), 0);
        assert_eq!((worked("R", "107"), worked("R", "200")), (7, 70), "it spins");
        assert_eq!((worked("S", "100"), worked("T", "100")), (70, 70));
        assert_eq!(at("T", "1").words(), "it is stopped");
        assert!(at("D", "1").is_uninterruptible() && !at("S", "1").is_uninterruptible());
        assert_eq!(Activity::parse("", ""), None);
    }

    #[test]
    fn this_process_is_active() {
        assert!(Activity::of(std::process::id()).is_some());
        assert_eq!(Activity::of(u32::MAX), None);
    }
}
