//! Whether coalescing is on, as numbers and as text.

use rxo_console::numbers::grouped;
use serde::Serialize;

use crate::worker::{Coalesce, Coalescing};

/// The state of `--coalesce`, and what it did in an interval or in a whole run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Switched {
    /// `auto`, `on` or `off`, as it was asked for.
    pub asked: &'static str,
    /// Whether frames are coalesced now.
    pub on: bool,
    /// Whether that is a probe, whose end decides.
    pub probe: bool,
    /// Number of times that coalescing was switched off, because it cost more than it saved.
    pub switched_off: u64,
    /// Number of times that coalescing was switched on again, because it saved more than it cost.
    pub switched_on: u64,
    /// Number of times that coalescing was tried while it was off.
    pub probes: u64,
    /// Frames that passed as they were while it was off.
    pub passed: u64,
}

impl Switched {
    /// `None` if it is always on, and was.
    pub(super) fn new(of: &Coalescing) -> Option<Self> {
        let Coalescing { asked, is_on: on, is_probe: probe, .. } = *of;
        let Coalescing { switched_off, switched_on, probes, passed, .. } = *of;
        let asked_name = asked.name();
        let is_plain = asked == Coalesce::On && of.passed == 0 && of.switched_off == 0;
        let this = Self { asked: asked_name, on, probe, switched_off, switched_on, probes, passed };
        (!is_plain).then_some(this)
    }

    /// The text in the totals.
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
