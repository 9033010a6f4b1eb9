//! Standard output for long-running commands: a slow reader does not block the command, and a closed pipe does
//! not end it.
//!
//! Optional lines, such as periodic counters, are dropped while too many lines wait. Other lines are few, and
//! are dropped only at a much higher limit.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;

use crate::fault::partial;
use crate::lines::{Lines, Manner, Rest, Stream};
use crate::log::{self, Level};

/// A queue of lines for standard output, which a separate thread prints.
#[derive(Debug)]
pub struct Printer {
    lines: Lines,
}

/// Maximum time for which a command waits at its end for a slow reader. After this time, lines that were not
/// printed are lost.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

impl Printer {
    /// Starts the printing thread. If this process runs in the foreground of a terminal, the thread sets `stop`
    /// when the terminal is closed. A line that is [offered](Self::offer) while `most_waiting` lines wait is
    /// dropped. `skipped_line` formats the line that reports the number of lines that were dropped or could not
    /// be written.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(
        most_waiting: usize,
        skipped_line: fn(u64) -> String,
        stop: Arc<AtomicBool>,
    ) -> Result<Self> {
        let manner = Manner { stream: Stream::Output, most_waiting, skipped_line };
        Ok(Self { lines: Lines::start(manner, failed, Some(stop))? })
    }

    /// Queues a line to be printed. The line is dropped only if 4,096 lines wait.
    pub fn line(&self, text: String) {
        self.lines.push(text);
    }

    /// Queues an optional line. The line is dropped if `most_waiting` lines (see [`Printer::start`]) are
    /// already queued.
    pub fn offer(&self, text: String) {
        self.lines.offer(text);
    }

    /// Waits until all lines are printed, at most five seconds. A reader that has closed standard output is
    /// not an error.
    ///
    /// # Errors
    /// If lines are still waiting after five seconds, or if the last lines cannot be written.
    pub fn finish(&self) -> Result<()> {
        match self.lines.finish(DRAIN_TIMEOUT) {
            Rest::Refused { lines, why } if why.kind() != ErrorKind::BrokenPipe => {
                Err(partial(format!("standard output: {why}; {lines} lines are not printed")))
            }
            Rest::Nothing | Rest::Refused { .. } => Ok(()),
            Rest::Unread { lines } => {
                let time = DRAIN_TIMEOUT.as_secs();
                Err(partial(format!(
                    "standard output was not read for {time} s; {lines} lines are not printed"
                )))
            }
        }
    }
}

fn failed(why: &io::Error) {
    let line =
        format!("standard output cannot be written: {why}; work goes on without these lines");
    log::write(Level::Warning, &line);
}
