//! A script against a host in memory.
//!
//! Separate from both: the host knows no script, and the script no host. What packetdrill does
//! with a kernel or a shared object is done here in one thread on virtual time, so that a script
//! has one outcome and takes no time. `packets.rs` gives and expects segments, `flow.rs` keeps the
//! numbers of a connection, `calls.rs` makes calls, `answers.rs` compares what they give, `wire.rs` builds and reads packets.
//!
//! It differs from packetdrill in these: a packet that leaves and is not expected before the end is
//! a failure; payload is a known pattern and is compared; ICMP comes in, does not go out; of shell
//! commands there is `sysctl` (`command.rs`), of code there are assertions (`assertion.rs`), because
//! there is no system here for others to change or to ask. The tolerance for times is 1 ms unless `--tolerance_usecs` says otherwise: virtual time is exact, scripts are
//! written in milliseconds.

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

use rxo_frame::{Duration, Instant};

pub use self::failure::Failure;
use self::flow::Flow;
use crate::host::{Fd, Progress, Settings, VirtualHost, Waiting};
use crate::script::{Action, Call, Event, Script, Time};

/// Runs the script `source`; `name` is what a failure calls it.
///
/// # Errors
/// The first thing that is not as the script says, or why it cannot be read.
pub fn run(name: &str, source: &str) -> Result<(), Failure> {
    let script = Script::read(source).map_err(|error| Failure::unreadable(name, &error))?;
    let mut runner = Runner::new(&script).map_err(|what| Failure::refused(name, 1, &what))?;
    for event in &script.events {
        runner
            .event(event)
            .map_err(|wrong| Failure::at(name, source, event.line, runner.elapsed(), wrong))?;
    }
    runner
        .finish()
        .map_err(|(line, wrong)| Failure::at(name, source, line, runner.elapsed(), wrong))
}

/// What is not as the script says.
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
    host: VirtualHost,
    start: Instant,
    tolerance: Duration,
    /// Timestamps of segments that leave are compared, in ticks of this; zero is not at all.
    timestamp_tick: Duration,
    is_v6: bool,
    /// The script's descriptors.
    descriptors: BTreeMap<i64, Fd>,
    /// The descriptor that code asks about: the last that was connected or accepted.
    under_test: Option<Fd>,
    /// The connection that segments belong to, once it has begun.
    flow: Option<Flow>,
    /// Calls that block, in order.
    pending: Vec<Pending>,
    /// Bytes written to each of the script's descriptors, and read.
    written: BTreeMap<i64, u32>,
    read: BTreeMap<i64, u32>,
}

/// A call that blocks.
struct Pending {
    line: usize,
    call: Call,
    until: Instant,
    waiting: Waiting,
    /// What it found to be wrong when it ended.
    wrong: Option<Wrong>,
    is_over: bool,
}

impl Runner {
    fn new(script: &Script) -> Result<Self, String> {
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
            host: VirtualHost::new(settings, start),
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
        self.host.now().since(self.start)
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
            Action::Command(command) => self.command(command)?,
            Action::Code(code) => self.code(code)?,
            Action::Out(_) => {}
        }
        self.look_at_pending()
    }

    /// The first and the last moment that `time` allows, without tolerance.
    fn when(&self, time: Time) -> (Instant, Instant) {
        let now = self.host.now();
        match time {
            Time::Any => (now, now + FAR),
            Time::At(at) => (self.start + at, self.start + at),
            Time::After(after) => (now + after, now + after),
            Time::Between(first, last) => (self.start + first, self.start + last),
            Time::AfterBetween(first, last) => (now + first, now + last),
        }
    }

    /// When a call that blocks is to return; counted as its beginning is.
    fn return_time(&self, time: Time, call: &Call) -> Option<Instant> {
        let base = match time {
            // `advance` has moved the clock by as much.
            Time::After(after) => {
                Instant::from_nanos(self.host.now().as_nanos().saturating_sub(nanos(after)))
            }
            _ => self.start,
        };
        call.until.map(|until| base + until)
    }

    /// Lets time come to `to`, and everything happen on the way.
    fn advance(&mut self, to: Instant) -> Result<(), Wrong> {
        while self.step(to)? {}
        Ok(())
    }

    /// Lets the next thing before `limit` happen; false when there was none and it is `limit`.
    fn step(&mut self, limit: Instant) -> Result<bool, Wrong> {
        let waits = self.pending.iter().filter(|pending| !pending.is_over);
        let deadline = waits.filter_map(|pending| pending.waiting.deadline()).min();
        let stop = deadline.filter(|at| *at <= limit);
        let has_fired = self.host.step(stop.unwrap_or(limit));
        self.look_at_pending()?;
        Ok(has_fired || stop.is_some())
    }

    /// Goes on with calls that block, and says what was wrong with one that returned.
    fn look_at_pending(&mut self) -> Result<(), Wrong> {
        for at in 0..self.pending.len() {
            let pending = &self.pending[at];
            if pending.is_over {
                continue;
            }
            let (call, until) = (pending.call.clone(), pending.until);
            match self.host.resume(pending.waiting.clone()) {
                Progress::Waits(waiting) => self.pending[at].waiting = waiting,
                Progress::Done(outcome) => {
                    self.pending[at].is_over = true;
                    let returned = self.check_return_time(until);
                    self.pending[at].wrong = returned.and(self.check(&call, outcome)).err();
                }
            }
        }
        match self.pending.iter_mut().find_map(|pending| pending.wrong.take()) {
            Some(wrong) => Err(wrong),
            None => Ok(()),
        }
    }

    fn check_return_time(&self, until: Instant) -> Result<(), Wrong> {
        let now = self.host.now();
        let off = now.since(until).max(until.since(now));
        if off <= self.tolerance {
            return Ok(());
        }
        let shown = |at: Instant| format!("returns at {} s", seconds(at.since(self.start)));
        Err(Wrong::new(shown(until), shown(now)))
    }

    /// What may not be left over when a script ends.
    fn finish(&mut self) -> Result<(), (usize, Wrong)> {
        if let Some(pending) = self.pending.iter().find(|pending| !pending.is_over) {
            let expected = format!("returns at {} s", seconds(pending.until.since(self.start)));
            return Err((pending.line, Wrong::new(expected, "still blocks at the script's end")));
        }
        match self.host.take_packet() {
            Some(packet) => Err((0, Wrong::new("nothing more leaves", self.shown(&packet)))),
            None => Ok(()),
        }
    }
}

/// Seconds with their millionths, as scripts have them.
fn seconds(time: Duration) -> String {
    format!("{}.{:06}", time.as_secs(), time.subsec_micros())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Longer than any connection lives without a word.
const FAR: Duration = Duration::from_secs(24 * 3600);
const KNOWN_OPTIONS: &str = "known are so_flags, tolerance_usecs, tcp_ts_tick_usecs, ip_version";

#[cfg(test)]
mod tests;
