//! The log: lines on standard error, besides the result on standard output.
//!
//! Before [`begin`], or without it, a line is `rxo: TEXT` and is written at once, which suits short commands.
//! After [`begin`], each line has time, level and nic, and a separate thread writes it. So a slow reader, a
//! full disk or a closed pipe neither blocks nor ends the process. Lines beyond a rate limit are dropped and
//! counted. For the journal of systemd, the level has the journal's own form, and the time is omitted.
//!
//! This module replaces the crate `tracing`, because its requirements are few: lines are not logged per packet,
//! all lines have three fixed fields, and there are no filters.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;
use serde::Serialize;

use crate::lines::{Lines, Manner, Stream};

/// The severity of a log line. The numbers are those of syslog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The log line reports an error that ends the command.
    Error = 3,
    /// The log line reports that data or a feature is missing.
    Warning = 4,
    /// The log line reports an event that the user should know about.
    Notice = 5,
    /// The log line contains periodic counters.
    Info = 6,
}

impl Level {
    /// The name of the level, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Info => "info",
        }
    }
}

/// The form of log lines on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Text: `TIME LEVEL NIC: TEXT`; in the journal of systemd, `<LEVEL>NIC: TEXT`.
    #[default]
    Text,
    /// Plain text: `rxo: TEXT`, as a short command writes it.
    Plain,
    /// JSON: one object per line, with `time`, `level`, `nic` and `text`.
    Json,
}

/// The log of a long-running command, whose lines are written by a separate thread.
#[derive(Debug)]
struct Log {
    form: Form,
    nic: String,
    lines: Lines,
    limit: Mutex<Limit>,
}

static LOG: OnceLock<Log> = OnceLock::new();

/// Begins the log of this process; `nic` appears in each line. A second call has no effect. Must be called
/// after all forks, because a child process would have no writer thread.
///
/// # Errors
/// If no thread can be started.
pub fn begin(form: Form, nic: &str) -> Result<()> {
    let manner =
        Manner { stream: Stream::Error, most_waiting: MOST_WAITING, skipped_line: skipped };
    let lines = Lines::start(manner, |_| {}, None)?;
    let limit = Mutex::new(Limit::new(Instant::now()));
    _ = LOG.set(Log { form, nic: nic.to_owned(), lines, limit });
    Ok(())
}

/// Writes one log line. After [`begin`], this function never blocks. Before [`begin`], it blocks for up to 5
/// seconds if the reader of standard error pauses.
pub fn write(level: Level, text: &str) {
    let Some(log) = LOG.get() else { return write_now(level, text) };
    let mut limit = log.limit.lock().unwrap_or_else(PoisonError::into_inner);
    // The error that ends a command must not be dropped by the rate limit.
    if level != Level::Error && !limit.admits(Instant::now()) {
        return log.lines.count_skipped();
    }
    drop(limit);
    log.lines.offer(log.rendered(level, text));
}

/// Waits until all log lines are written, at most 5 seconds, so that the process can end.
pub fn finish() {
    if let Some(log) = LOG.get() {
        _ = log.lines.finish(Duration::from_secs(TIMEOUT_S.unsigned_abs()));
    }
}

/// Returns `text` as a line for standard output. If the journal of systemd reads standard output, the line
/// begins with [`Level::Info`] in the journal's form.
#[must_use]
pub fn for_output(text: String) -> String {
    match is_journal(io::stdout()) {
        true => format!("<{}>{text}", Level::Info as u8),
        false => text,
    }
}

fn write_now(level: Level, text: &str) {
    let stderr = io::stderr();
    let timeout = Timespec { tv_sec: TIMEOUT_S, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], Some(&timeout));
    let mark = if is_journal(&stderr) { format!("<{}>", level as u8) } else { "rxo: ".to_owned() };
    if ready != Ok(0) {
        // A failure is ignored: the result of the command is valid even if standard error is closed.
        _ = writeln!(stderr.lock(), "{mark}{text}");
    }
}

fn rendered(form: Form, nic: &str, (level, text): (Level, &str), since_1970: Duration) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        time: &'a str,
        level: Level,
        nic: &'a str,
        text: &'a str,
    }
    if form != Form::Json && is_journal(io::stderr()) {
        return format!("<{}>{nic}: {text}", level as u8);
    }
    let time = timestamp(since_1970);
    match form {
        Form::Plain => format!("rxo: {text}"),
        Form::Text => format!("{time} {} {nic}: {text}", level.name()),
        // The value has only texts, so it always has a JSON form.
        Form::Json => {
            serde_json::to_string(&Line { time: &time, level, nic, text }).unwrap_or_default()
        }
    }
}

/// Returns the log line that reports the number of dropped lines.
fn skipped(lines: u64) -> String {
    let text = format!("{lines} lines left out: there were too many, or they could not be written");
    LOG.get().map_or_else(String::new, |log| log.rendered(Level::Warning, &text))
}

impl Log {
    fn rendered(&self, level: Level, text: &str) -> String {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        rendered(self.form, &self.nic, (level, text), since)
    }
}

/// Returns `true` if `stream` leads to the journal of systemd, according to `JOURNAL_STREAM` in the
/// environment.
fn is_journal(stream: impl AsFd) -> bool {
    let Ok(journal) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(found) = fstat(stream.as_fd()) else { return false };
    journal == format!("{}:{}", found.st_dev, found.st_ino)
}

/// Formats a Unix time, given as the duration since 1970 UTC, as RFC 3339, in UTC with milliseconds.
#[must_use]
pub fn timestamp(since_1970: Duration) -> String {
    let (days, second) = (since_1970.as_secs() / 86_400, since_1970.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let ms = since_1970.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Returns year, month and day of the date `days` days after 1 January 1970. The computation uses years that begin in
/// March, in which a leap day is the last day.
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_TO_1970;
    let (era, day) = (days / DAYS_400_YEARS, days % DAYS_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // From March on, five months have 153 days, and so do the next five.
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, of_month)
}

/// The number of days from 1 March of the year 0 to 1 January 1970.
const DAYS_TO_1970: u64 = 719_468;
const DAYS_400_YEARS: u64 = 146_097;

/// A rate limit for log lines: a burst, then a constant rate.
#[derive(Debug)]
struct Limit {
    left: f64,
    at: Instant,
}

impl Limit {
    const fn new(at: Instant) -> Self {
        Self { left: MOST_AT_ONCE, at }
    }

    /// Returns `true`, and counts the line, if the limit permits a line at `now`.
    fn admits(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left, self.at) = ((self.left + passed * A_SECOND).min(MOST_AT_ONCE), now);
        let admits = self.left >= 1.0;
        self.left -= f64::from(u8::from(admits));
        admits
    }
}

const MOST_AT_ONCE: f64 = 100.0;
const A_SECOND: f64 = 10.0;
const MOST_WAITING: usize = 256;
/// Maximum time in seconds for which a log line waits for its reader.
const TIMEOUT_S: i64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_time_level_and_nic() {
        let said = (Level::Warning, "a \"link\" is down");
        let at = Duration::from_millis(1_795_883_540_123);
        let text = rendered(Form::Text, "packet:eth1", said, at);
        assert_eq!(text, "2026-11-28T16:32:20.123Z warning packet:eth1: a \"link\" is down");
        let json: serde_json::Value =
            serde_json::from_str(&rendered(Form::Json, "packet:eth1", said, at)).unwrap();
        assert_eq!(json["time"], "2026-11-28T16:32:20.123Z");
        assert_eq!((&json["level"], &json["nic"]), (&"warning".into(), &"packet:eth1".into()));
        assert_eq!(json["text"], "a \"link\" is down");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let rows = [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_454, (2026, 1, 1)),
            (20_818, (2026, 12, 31)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ];
        for (days, date) in rows {
            assert_eq!(civil(days), date, "{days}");
        }
    }

    #[test]
    fn lines_without_end_are_limited_and_come_again() {
        let begin = Instant::now();
        let mut limit = Limit::new(begin);
        let admitted = (0..1_000).filter(|_| limit.admits(begin)).count();
        assert_eq!(admitted, 100);
        assert!(limit.admits(begin + Duration::from_millis(150)));
        assert!(!limit.admits(begin + Duration::from_millis(151)));
    }
}
