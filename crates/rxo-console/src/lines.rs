//! A queue of lines for one output stream of this process, and the thread that writes them.
//!
//! Queueing a line never waits for the stream's reader (Ctrl-S, a full pipe), and a line that cannot be written
//! does not end the process. The queue is bounded. A line that does not fit into it or cannot be written (a
//! full disk, a closed pipe) is dropped and counted. After such a loss, the next line that can be written is
//! preceded by a line with the number of dropped lines.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

/// The output stream to which the lines of a queue are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Output,
    Error,
}

/// The output stream of a queue of lines, with the limits of the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) stream: Stream,
    /// The number of waiting lines at which a further optional line is dropped.
    pub(crate) most_waiting: usize,
    /// The function that formats the line with the number of dropped lines.
    pub(crate) skipped_line: fn(u64) -> String,
}

/// A queue of lines and the thread that writes them.
#[derive(Debug)]
pub(crate) struct Lines {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    manner: Manner,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Line>,
    /// The number of lines that were dropped since dropped lines were last reported.
    skipped: u64,
    /// The number of lines in the entry that is being written: 1 for an ordinary line, the number of dropped
    /// lines for a report of dropped lines, 0 if nothing is being written.
    writing: u64,
    /// The error of writing the last line; `None` if that line was written.
    failure: Option<io::Error>,
}

#[derive(Debug)]
enum Line {
    Text(String),
    /// A report that this number of lines was dropped.
    Skipped(u64),
}

/// The lines of a queue that are not written when [`Lines::finish`] returns.
#[derive(Debug)]
pub(crate) enum Rest {
    Nothing,
    /// This number of lines could not be written, for this reason.
    Refused {
        lines: u64,
        why: io::Error,
    },
    /// This number of lines is still queued, because nothing reads the stream.
    Unread {
        lines: u64,
    },
}

/// Maximum number of waiting lines of any kind. The limit bounds the memory of the queue if nothing reads the stream
/// any more.
const MOST_OF_ALL: usize = 4_096;

impl Lines {
    /// Starts the thread that writes queued lines. Calls `failed` for a failed write, but not for further failures
    /// until a write succeeds. Sets `closed` when the terminal is closed, if the stream is a terminal with this process
    /// in its foreground.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn start(
        manner: Manner,
        failed: fn(&io::Error),
        closed: Option<Arc<AtomicBool>>,
    ) -> Result<Self> {
        let (state, changed) = Default::default();
        let shared = Arc::new(Shared { state, changed, manner });
        let lines = Self { shared: Arc::clone(&shared) };
        let closed = closed.filter(|_| is_foreground(manner.stream));
        let write = move || shared.write(failed, closed.as_deref());
        let thread = thread::Builder::new().name("rxo-print".to_owned()).spawn(write);
        thread.context("cannot start a thread that prints")?;
        Ok(lines)
    }

    /// Queues a line. The line is dropped only if [`MOST_OF_ALL`] lines wait.
    pub(crate) fn push(&self, text: String) {
        self.queue(text, MOST_OF_ALL);
    }

    /// Queues an optional line, such as one of periodic counters. The line is dropped if
    /// [`Manner::most_waiting`] lines wait.
    pub(crate) fn offer(&self, text: String) {
        self.queue(text, self.shared.manner.most_waiting);
    }

    /// Counts one line as dropped, although it was never queued.
    pub(crate) fn count_skipped(&self) {
        self.shared.lock().skipped += 1;
    }

    /// Waits until all lines are written, at most for `timeout`. Returns the lines that were not written.
    pub(crate) fn finish(&self, timeout: Duration) -> Rest {
        let state = self.shared.lock();
        let is_busy = |state: &mut State| state.is_busy();
        let waited = self.shared.changed.wait_timeout_while(state, timeout, is_busy);
        let (mut state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        let lines = state.unprinted();
        match state.failure.take() {
            _ if timeout.timed_out() => Rest::Unread { lines },
            Some(why) => Rest::Refused { lines, why },
            None => Rest::Nothing,
        }
    }

    fn queue(&self, text: String, most: usize) {
        let mut state = self.shared.lock();
        if state.waiting.len() < most {
            state.print_skipped();
            state.waiting.push_back(Line::Text(text));
            self.shared.changed.notify_all();
        } else {
            state.skipped += 1;
        }
    }
}

impl State {
    /// Returns the number of lines that were not printed: the queued lines, the line that is being written, and
    /// dropped lines that were not reported yet.
    fn unprinted(&self) -> u64 {
        self.waiting.iter().map(Line::lines).sum::<u64>() + self.skipped + self.writing
    }

    fn print_skipped(&mut self) {
        if self.skipped > 0 {
            self.waiting.push_back(Line::Skipped(std::mem::take(&mut self.skipped)));
        }
    }

    /// Returns `true` if the writing thread has lines to write, or dropped lines to report.
    fn is_busy(&self) -> bool {
        let says_more = self.failure.is_none() && self.skipped > 0;
        !self.waiting.is_empty() || self.writing > 0 || says_more
    }
}

impl Line {
    /// Returns the number of lines that this entry represents: for a report of dropped lines their number,
    /// otherwise 1.
    const fn lines(&self) -> u64 {
        match self {
            Self::Text(_) => 1,
            Self::Skipped(lines) => *lines,
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The queue is consistent whenever the lock is free, so a panic elsewhere does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, failed: fn(&io::Error), closed: Option<&AtomicBool>) {
        // Set while the last line in the stream is incomplete, because a write failed.
        let mut is_cut = false;
        let mut state = self.lock();
        loop {
            // After a failure the thread waits for another line: retrying at once would only waste CPU time.
            if state.waiting.is_empty() && state.failure.is_none() {
                state.print_skipped();
            }
            let Some(line) = state.waiting.pop_front() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.writing = line.lines();
            drop(state);
            let (lines, text) = (line.lines(), self.text(line));
            let written = with(self.manner.stream, |to| write_line(to, &text, &mut is_cut));
            state = self.lock();
            state.writing = 0;
            state.skipped += if written.is_err() { lines } else { 0 };
            let was_fine = std::mem::replace(&mut state.failure, written.err()).is_none();
            if let Some(error) = &state.failure {
                if is_hung_up(error) {
                    closed.inspect(|closed| closed.store(true, Ordering::Relaxed));
                }
                if was_fine {
                    failed(error);
                }
            }
            self.changed.notify_all();
        }
    }

    fn text(&self, line: Line) -> String {
        let mut text = match line {
            Line::Text(text) => text,
            Line::Skipped(lines) => (self.manner.skipped_line)(lines),
        };
        text.push('\n');
        text
    }
}

fn with<T>(stream: Stream, act: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
    match stream {
        Stream::Output => act(io::stdout().as_fd()),
        Stream::Error => act(io::stderr().as_fd()),
    }
}

/// Writes the complete line `text`. `is_cut` is `true` while the last line in the stream is incomplete after a
/// failed write; this function reads and updates the flag.
fn write_line(to: BorrowedFd<'_>, text: &str, is_cut: &mut bool) -> io::Result<()> {
    let ended = if *is_cut { format!("\n{text}") } else { text.to_owned() };
    let mut left = ended.as_bytes();
    while !left.is_empty() {
        match rustix::io::write(to, left).map_err(io::Error::from) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => left = &left[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Another process that shares the stream has made it non-blocking.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(&to, PollFlags::OUT)], None)?;
            }
            Err(error) => {
                *is_cut = *is_cut && left.len() == ended.len() || left.len() < ended.len();
                return Err(error);
            }
        }
        *is_cut = true;
    }
    *is_cut = false;
    Ok(())
}

/// Returns `true` if `stream` is a terminal and this process runs in its foreground.
fn is_foreground(stream: Stream) -> bool {
    with(stream, |stream| stream.is_terminal() && tcgetpgrp(stream) == Ok(getpgrp()))
}

/// Returns `true` for the error of a write to a closed terminal.
fn is_hung_up(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

    #[test]
    fn lines_that_were_left_out_are_not_printed_either() {
        let waiting = [Line::Text("one".into()), Line::Skipped(5), Line::Text("two".into())];
        let state = State { waiting: waiting.into(), skipped: 3, writing: 2, failure: None };
        assert_eq!(state.unprinted(), 12);
        assert_eq!(State::default().unprinted(), 0);
    }

    #[test]
    fn what_cannot_be_said_is_not_waited_for() {
        let failure = || Some(io::Error::other("full"));
        let state = State { skipped: 3, failure: failure(), ..State::default() };
        assert!(!state.is_busy());
        assert!(State { failure: None, ..state }.is_busy());
        assert!(State { writing: 1, failure: failure(), ..State::default() }.is_busy());
    }

    #[test]
    fn a_line_that_was_cut_is_ended_before_the_next() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let mut is_cut = false;
        assert!(write_line(full.as_fd(), "a\n", &mut is_cut).is_err());
        assert!(!is_cut, "nothing of it was written");
        is_cut = true;
        assert!(write_line(full.as_fd(), "a\n", &mut is_cut).is_err());
        assert!(is_cut);
        write_line(writer.as_fd(), "b\n", &mut is_cut).unwrap();
        write_line(writer.as_fd(), "c\n", &mut is_cut).unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "\nb\nc\n");
    }
}
