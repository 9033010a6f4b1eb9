//! Runs a script against a machine in memory.
//!
//! Separate from both, which do not depend on each other. In place of packetdrill's real kernel, everything
//! runs in one thread on virtual time, so a script has one outcome and takes no time. `packets.rs` gives
//! segments to the host and expects them from it, `flow.rs` translates their numbers, `calls.rs` makes calls,
//! `answers.rs` checks their results, and `wire.rs` builds and parses packets.
//!
//! It differs from packetdrill in these points. An unexpected packet before the end is a failure. Payload is
//! a known pattern and is compared. ICMP messages can arrive but not leave. The only shell command is
//! `sysctl` (`command.rs`) and the only code is assertions (`assertion.rs`), because there is no system here
//! to change or query. The tolerance for times is 1 ms unless `--tolerance_usecs` sets it, because virtual
//! time is exact and scripts are written in milliseconds.

mod answers;
mod assertion;
mod calls;
mod command;
mod failure;
mod flow;
mod icmp;
mod packets;
mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rxo_frame::{Duration, Instant};

use self::calls::Progress;
pub use self::failure::Failure;
use self::flow::Flow;
use crate::machine::{Fd, Machine, Settings};
use crate::script::{Action, Call, Event, Script, Time};

/// Runs the script `source`. A failure refers to it as `name`; files that the script runs are searched in the
/// folder of that path.
///
/// # Errors
/// The first deviation from the script, or the reason why it cannot be parsed.
pub fn run(name: &str, source: &str) -> Result<(), Failure> {
    run_until(name, source, Runner::finish)
}

/// Runs a script as [`run`] does, but ignores packets that leave after the last event, as packetdrill does.
///
/// # Errors
/// The errors of [`run`].
pub fn run_foreign(name: &str, source: &str) -> Result<(), Failure> {
    run_until(name, source, Runner::finish_calls)
}

fn run_until(
    name: &str,
    source: &str,
    finish: fn(&mut Runner) -> Result<(), (usize, Wrong)>,
) -> Result<(), Failure> {
    let script = Script::read(source).map_err(|error| Failure::unreadable(name, &error))?;
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    let mut runner =
        Runner::new(&script, folder).map_err(|what| Failure::refused(name, 1, &what))?;
    for event in &script.events {
        runner
            .event(event)
            .map_err(|wrong| Failure::at(name, source, event.line, runner.elapsed(), wrong))?;
    }
    finish(&mut runner)
        .map_err(|(line, wrong)| Failure::at(name, source, line, runner.elapsed(), wrong))
}

/// A deviation from the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    expected: String,
    got: String,
}

impl Wrong {
    pub(crate) fn new(expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self { expected: expected.into(), got: got.into() }
    }
}

struct Runner {
    machine: Machine,
    /// The folder of the script.
    folder: PathBuf,
    start: Instant,
    tolerance: Duration,
    /// Unit in which timestamps of sent segments are compared; zero to ignore timestamps.
    timestamp_tick: Duration,
    is_v6: bool,
    /// Maps the script's descriptors to the machine's.
    descriptors: BTreeMap<i64, Fd>,
    /// Descriptor that assertions are about: the one connected or accepted last; `None` before that.
    under_test: Option<Fd>,
    /// The connection of the script's segments, once it has begun.
    flow: Option<Flow>,
    /// Blocked calls, in order.
    pending: Vec<Pending>,
    /// Bytes written to each of the script's descriptors; the next field counts bytes read.
    written: BTreeMap<i64, u32>,
    read: BTreeMap<i64, u32>,
}

/// A blocked call.
struct Pending {
    line: usize,
    call: Call,
    until: Instant,
    progress: Progress,
    /// The deviation of the call's result, if any.
    wrong: Option<Wrong>,
    is_over: bool,
}

impl Runner {
    fn new(script: &Script, folder: &Path) -> Result<Self, String> {
        let (mut flags, mut tolerance, mut tick, mut is_v6) = ("", 1_000, 0, false);
        for (name, value) in &script.options {
            let number = || value.parse::<u32>().map_err(|_| format!("--{name}: not a number"));
            match name.as_str() {
                "so_flags" => flags = value,
                "tolerance_usecs" => tolerance = number()?,
                "tcp_ts_tick_usecs" => tick = number()?,
                "ip_version" => is_v6 = value == "ipv6",
                _ => return Err(format!("--{name} is not known here; {KNOWN_OPTIONS}")),
            }
        }
        let settings = Settings::of_flags(flags).map_err(|error| error.to_string())?;
        let start = Instant::from_micros(1_000_000_000);
        Ok(Self {
            machine: Machine::new(settings, start),
            folder: folder.to_owned(),
            start,
            tolerance: Duration::from_micros(tolerance.into()),
            timestamp_tick: Duration::from_micros(tick.into()),
            is_v6,
            descriptors: BTreeMap::new(),
            under_test: None,
            flow: None,
            pending: Vec::new(),
            written: BTreeMap::new(),
            read: BTreeMap::new(),
        })
    }

    fn elapsed(&self) -> Duration {
        self.machine.now().since(self.start)
    }

    fn event(&mut self, event: &Event) -> Result<(), Wrong> {
        let (earliest, latest) = self.when(event.time);
        if let Action::Out(expected) = &event.action {
            let window = (event.time != Time::Any).then_some((earliest, latest));
            return self.expect(expected, window);
        }
        self.advance(earliest)?;
        match &event.action {
            Action::In(segment) => self.give(segment)?,
            Action::Icmp(icmp) => self.give_icmp(icmp)?,
            Action::Call(call) => {
                let until = self.return_time(event.time, call);
                self.call(event.line, call, until)?;
            }
            Action::Command(command) => self.command(command, command::DEEPEST)?,
            Action::Code(code) => self.code(code)?,
            Action::Out(_) => {}
        }
        self.resume_pending()
    }

    /// Returns the earliest and latest instant that `time` permits, without tolerance.
    fn when(&self, time: Time) -> (Instant, Instant) {
        let now = self.machine.now();
        match time {
            Time::Any => (now, now + FAR),
            Time::At(at) => (self.start + at, self.start + at),
            Time::After(after) => (now + after, now + after),
            Time::Between(first, last) => (self.start + first, self.start + last),
            Time::AfterBetween(first, last) => (now + first, now + last),
        }
    }

    /// Returns the time at which a blocking call must return, relative to the same origin as its start;
    /// `None` if it must not block.
    fn return_time(&self, time: Time, call: &Call) -> Option<Instant> {
        let base = match time {
            // `advance` has already moved the clock by this much.
            Time::After(after) => {
                Instant::from_nanos(self.machine.now().as_nanos().saturating_sub(nanos(after)))
            }
            _ => self.start,
        };
        call.until.map(|until| base + until)
    }

    /// Advances time to `to` and handles all events up to then.
    fn advance(&mut self, to: Instant) -> Result<(), Wrong> {
        while self.step(to)? {}
        Ok(())
    }

    /// Handles the next event before `limit`. Returns `false` if there is none; the time is then `limit`.
    fn step(&mut self, limit: Instant) -> Result<bool, Wrong> {
        let waits = self.pending.iter().filter(|pending| !pending.is_over);
        let deadline = waits.filter_map(|pending| pending.progress.deadline).min();
        let stop = deadline.filter(|at| *at <= limit);
        let has_fired = self.machine.step(stop.unwrap_or(limit));
        self.resume_pending()?;
        Ok(has_fired || stop.is_some())
    }

    /// Resumes blocked calls, and reports the first that returned a wrong result.
    fn resume_pending(&mut self) -> Result<(), Wrong> {
        for at in 0..self.pending.len() {
            let pending = &self.pending[at];
            if pending.is_over {
                continue;
            }
            let (call, until, mut progress) =
                (pending.call.clone(), pending.until, pending.progress);
            let outcome = self.attempt(&call, &mut progress)?;
            self.pending[at].progress = progress;
            if let Some(outcome) = outcome {
                self.pending[at].is_over = true;
                let returned = self.check_return_time(until);
                self.pending[at].wrong = returned.and(self.check(&call, outcome)).err();
            }
        }
        match self.pending.iter_mut().find_map(|pending| pending.wrong.take()) {
            Some(wrong) => Err(wrong),
            None => Ok(()),
        }
    }

    fn check_return_time(&self, until: Instant) -> Result<(), Wrong> {
        let now = self.machine.now();
        let off = now.since(until).max(until.since(now));
        if off <= self.tolerance {
            return Ok(());
        }
        let shown = |at: Instant| format!("returns at {} s", seconds(at.since(self.start)));
        Err(Wrong::new(shown(until), shown(now)))
    }

    /// Checks that no packet and no blocked call is left at the end of the script.
    fn finish(&mut self) -> Result<(), (usize, Wrong)> {
        self.finish_calls()?;
        match self.machine.take_packet() {
            Some(packet) => Err((0, Wrong::new("nothing more leaves", self.shown(&packet)))),
            None => Ok(()),
        }
    }

    /// Checks that no call blocks at the end of the script.
    fn finish_calls(&mut self) -> Result<(), (usize, Wrong)> {
        if let Some(pending) = self.pending.iter().find(|pending| !pending.is_over) {
            let expected = format!("returns at {} s", seconds(pending.until.since(self.start)));
            return Err((pending.line, Wrong::new(expected, "still blocks at the script's end")));
        }
        Ok(())
    }
}

/// Formats seconds with six decimals, as scripts do.
fn seconds(time: Duration) -> String {
    format!("{}.{:06}", time.as_secs(), time.subsec_micros())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A time span longer than any connection lives without traffic.
const FAR: Duration = Duration::from_secs(24 * 3600);
const KNOWN_OPTIONS: &str = "known are so_flags, tolerance_usecs, tcp_ts_tick_usecs, ip_version";

#[cfg(test)]
mod tests;
