//! Standard output for what must never wait for its reader: lines are queued and printed by a
//! thread of their own.
//!
//! A reader may pause at any time (Ctrl-S, a full pipe), and a network must not pause with it. The
//! queue is bounded: lines that come again and again, such as intervals, are left out while it is full, and
//! a line in their place says how many. All others are few, and are kept.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::fault::partial;
use crate::output;

/// Prints from another thread.
#[derive(Debug)]
pub struct Printer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    most_waiting: usize,
    /// The line for so many lines that were left out.
    skipped_line: fn(u64) -> String,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Line>,
    /// Lines left out since a line last said how many.
    skipped: u64,
    /// How many lines the line stands for that is being written now; 0 if none is.
    writing: u64,
    /// Why nothing more can be written.
    failed: Option<io::Error>,
}

#[derive(Debug)]
enum Line {
    Output(String),
    Note(String),
    /// Says how many lines were left out.
    Skipped(u64),
}

impl State {
    /// How many lines are not printed yet, with those left out.
    fn unprinted(&self) -> u64 {
        self.waiting.iter().map(Line::lines).sum::<u64>() + self.skipped + self.writing
    }
}

impl Printer {
    /// Starts the thread. When the reader has closed standard output, the thread sets `stop`. A line that is
    /// [offered](Self::offer) while `most_waiting` lines wait is left out; `skipped_line` is the line that
    /// says how many were.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(
        most_waiting: usize,
        skipped_line: fn(u64) -> String,
        stop: Arc<AtomicBool>,
    ) -> Result<Self> {
        let (state, changed) = Default::default();
        let shared = Arc::new(Shared { state, changed, most_waiting, skipped_line });
        let printer = Self { shared: Arc::clone(&shared) };
        let print = move || shared.print(&stop);
        let thread = thread::Builder::new().name("rxo-print".to_owned()).spawn(print);
        thread.context("cannot start a thread that prints")?;
        Ok(printer)
    }

    /// Prints a line on standard output.
    pub fn line(&self, text: String) {
        self.queue(Line::Output(text));
    }

    /// Prints a line on standard error, as [`output::note`].
    pub fn note(&self, text: String) {
        self.queue(Line::Note(text));
    }

    /// Prints a line on standard output, unless too many wait.
    pub fn offer(&self, text: String) {
        let mut state = self.shared.lock();
        if state.waiting.len() < self.shared.most_waiting {
            self.shared.say_skipped(&mut state);
            state.waiting.push_back(Line::Output(text));
            self.shared.changed.notify_all();
        } else {
            state.skipped += 1;
        }
    }

    /// Waits until everything is printed, at most for `patience`.
    ///
    /// # Errors
    /// If the reader has closed standard output, or reads nothing for so long.
    pub fn finish(&self, patience: Duration) -> Result<()> {
        let state = self.shared.lock();
        let is_busy = |state: &mut State| state.failed.is_none() && state.unprinted() > 0;
        let waited = self.shared.changed.wait_timeout_while(state, patience, is_busy);
        let (mut state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.failed.take() {
            return Err(error.into());
        }
        if timeout.timed_out() {
            let lines = state.unprinted();
            let time = patience.as_secs();
            return Err(partial(format!(
                "standard output was not read for {time} s; {lines} lines are not printed"
            )));
        }
        Ok(())
    }

    fn queue(&self, line: Line) {
        let mut state = self.shared.lock();
        self.shared.say_skipped(&mut state);
        state.waiting.push_back(line);
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The queue is whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say_skipped(&self, state: &mut State) {
        if state.skipped > 0 {
            state.waiting.push_back(Line::Skipped(std::mem::take(&mut state.skipped)));
        }
    }

    fn print(&self, stop: &AtomicBool) {
        let mut state = self.lock();
        loop {
            if state.waiting.is_empty() {
                self.say_skipped(&mut state);
            }
            let Some(line) = state.waiting.pop_front() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.writing = line.lines();
            drop(state);
            let written = line.write(self.skipped_line);
            state = self.lock();
            state.writing = 0;
            if let Err(error) = written {
                state.failed = Some(error);
                stop.store(true, Ordering::Relaxed);
                self.changed.notify_all();
                return;
            }
            self.changed.notify_all();
        }
    }
}

impl Line {
    /// How many lines it stands for: those left out, too.
    const fn lines(&self) -> u64 {
        match self {
            Self::Output(_) | Self::Note(_) => 1,
            Self::Skipped(lines) => *lines,
        }
    }

    fn write(self, skipped_line: fn(u64) -> String) -> io::Result<()> {
        let text = match self {
            Self::Output(text) => text,
            Self::Skipped(lines) => skipped_line(lines),
            Self::Note(text) => {
                output::note(&text);
                return Ok(());
            }
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_were_left_out_are_not_printed_either() {
        let waiting = [Line::Output("one".into()), Line::Skipped(5), Line::Note("two".into())];
        let state = State { waiting: waiting.into(), skipped: 3, writing: 2, failed: None };
        assert_eq!(state.unprinted(), 12);
        assert_eq!(State::default().unprinted(), 0);
    }
}
