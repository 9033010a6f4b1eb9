//! State and effects of `--coalesce`, as numbers and as text.

use rxo_console::numbers::grouped;
use serde::Serialize;

use crate::worker::{Coalesce, Coalescing};

/// The state of `--coalesce`, and its effects in an interval or in a whole run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Switched {
    /// The mode that the user requested: `auto`, `on` or `off`.
    pub asked: &'static str,
    /// `true` if frames go through the engines now.
    pub on: bool,
    /// `true` if coalescing is on only as a probe, whose result decides whether coalescing stays on.
    pub probe: bool,
    /// The number of times that coalescing was switched off, because it cost more than it saved.
    pub switched_off: u64,
    /// The number of times that coalescing was switched on again, because it saved more than it cost.
    pub switched_on: u64,
    /// The number of times that coalescing was switched on for a probe, although it had been switched off before.
    pub probes: u64,
    /// The number of frames that passed unchanged while coalescing was off.
    pub passed: u64,
}

impl Switched {
    /// Creates the figures; `None` if coalescing is always on and was never off.
    pub(super) fn new(of: &Coalescing) -> Option<Self> {
        let Coalescing { asked, is_on: on, is_probe: probe, .. } = *of;
        let Coalescing { switched_off, switched_on, probes, passed, .. } = *of;
        let asked_name = asked.name();
        let is_plain = asked == Coalesce::On && of.passed == 0 && of.switched_off == 0;
        let this = Self { asked: asked_name, on, probe, switched_off, switched_on, probes, passed };
        (!is_plain).then_some(this)
    }

    /// Returns the line about `--coalesce` in the totals.
    pub(super) fn totals(&self) -> String {
        let Self { asked, on, switched_off, switched_on, probes, passed, .. } = *self;
        let state = if on { "on" } else { "off" };
        format!(
            "{asked}, {state} now; switched off {switched_off} times and on {switched_on} times, tried {probes} times; \
             {} frames passed",
            grouped(passed)
        )
    }
}
