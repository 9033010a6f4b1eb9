//! Where the calibration is: a bar on a terminal, plain lines otherwise, nothing beside JSON that
//! is read by a machine.

use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};

use super::plan::Setting;
use super::run::Sample;

/// Shows how far the measurements are.
#[derive(Debug)]
pub(super) enum Progress {
    Bar(ProgressBar),
    Lines,
    Silent,
}

impl Progress {
    /// For this many measurements; `json` when the result is for a machine.
    pub(super) fn new(measurements: usize, json: bool) -> Self {
        if !io::stderr().is_terminal() {
            return if json { Self::Silent } else { Self::Lines };
        }
        let bar = ProgressBar::new(measurements as u64);
        // The template is a constant; were it wrong, the plain bar would do.
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    /// A measurement begins.
    pub(super) fn begin(&self, round: usize, setting: Setting) {
        if let Self::Bar(bar) = self {
            bar.set_message(format!("round {}: {setting}", round + 1));
        }
    }

    /// It came to this.
    pub(super) fn end(&self, round: usize, setting: Setting, sample: &Sample) {
        match self {
            Self::Bar(bar) => bar.inc(1),
            Self::Lines => {
                let Sample { ns, gbit_per_s, deliveries, .. } = sample;
                let (round, setting) = (round + 1, setting.to_string());
                // Standard error is closed: the result still counts.
                _ = writeln!(
                    io::stderr(),
                    "round {round}  {setting:<24}  {:>5.1} packets per delivery  {ns:>6.0} ns per \
                     packet  {gbit_per_s:>5.1} Gbit/s",
                    1.0 / deliveries
                );
            }
            Self::Silent => {}
        }
    }

    /// No more measurements.
    pub(super) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

const TEMPLATE: &str = "{bar:30} {pos}/{len} {msg} ({eta} left)";
