//! Where the demo is: a bar on a terminal, plain lines otherwise, nothing beside JSON that is
//! read by a machine. Everything goes to standard error; standard output has the result alone.

use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};

use super::path::Path;
use super::sample::Sample;

/// Shows how far the measurements are.
#[derive(Debug)]
pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines,
    Silent,
}

impl Progress {
    /// For this many measurements; `json` when the result is for a machine.
    pub(crate) fn new(measurements: usize, json: bool) -> Self {
        if io::stderr().is_terminal() {
            let bar = ProgressBar::new(measurements as u64);
            // The template is a constant; were it wrong, the plain bar would do.
            if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
                bar.set_style(style);
            }
            return Self::Bar(bar);
        }
        if json { Self::Silent } else { Self::Lines }
    }

    /// A measurement begins.
    pub(crate) fn begin(&self, round: usize, path: Path) {
        if let Self::Bar(bar) = self {
            bar.set_message(format!("round {}: {}", round + 1, path.name()));
        }
    }

    /// It came to this.
    pub(crate) fn end(&self, round: usize, path: Path, sample: &Sample) {
        match self {
            Self::Bar(bar) => bar.inc(1),
            Self::Lines => {
                // Standard error is closed: the result still counts.
                _ = writeln!(io::stderr(), "{}", line(round, path, sample));
            }
            Self::Silent => {}
        }
    }

    /// No more measurements.
    pub(crate) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn line(round: usize, path: Path, sample: &Sample) -> String {
    let Sample { gbit_per_s, cpu_s_per_gb, rr_p50_us, .. } = sample;
    format!(
        "round {}  {:<15}  {gbit_per_s:>5.1} Gbit/s  {cpu_s_per_gb:>5.2} CPU s/GB  \
         {rr_p50_us:>4.0} us request/response",
        round + 1,
        path.name()
    )
}

const TEMPLATE: &str = "{bar:30} {pos}/{len} {msg} ({eta} left)";
