//! Coalescing that switches itself off and on: a judge decides whether coalescing saves more than it costs.
//!
//! This module is separate from the engine that it switches, because it decides over a time series. The computation
//! has no side effects: samples of intervals go in, and the decision whether to use the engine comes out.
//!
//! The engine costs a fixed time per frame. Each delivery that the engine saves would cost time here and in the
//! host. So the criterion is frames per delivery. While the engine is off, this number cannot be measured. So
//! the engine is switched on again for a probe after a pause that doubles each time, or as soon as much more
//! traffic arrives. Hysteresis comes from three sources: two limits, the number of intervals in a row, and the
//! pause, which becomes short again only after coalescing has paid for long.
//!
//! Contract: the number of switches is bounded whatever arrives. Intervals with little traffic, or with a
//! nearly idle worker, decide nothing, because nothing could be gained.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rxo_frame::{Count, Instant};

/// The mode of coalescing: when frames go through the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coalesce {
    /// Frames always go through the engine.
    #[default]
    On,
    /// Frames never go through the engine; they pass unchanged.
    Off,
    /// Frames go through the engine while that saves more than it costs.
    Auto,
}

/// The error for a string other than `auto`, `on` and `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("give auto, on or off")]
pub struct BadCoalesce;

impl FromStr for Coalesce {
    type Err = BadCoalesce;

    fn from_str(text: &str) -> Result<Self, BadCoalesce> {
        let all = [Self::On, Self::Off, Self::Auto];
        all.into_iter().find(|it| it.name() == text).ok_or(BadCoalesce)
    }
}

impl Coalesce {
    /// Returns the mode's name: `on`, `off` or `auto`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Coalesce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The state of coalescing, and how often it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coalescing {
    /// The requested mode.
    pub asked: Coalesce,
    /// `true` if frames go through the engine now, or will once the host's device accepts packets again.
    pub is_on: bool,
    /// `true` if the engine is on only as a probe, whose result decides whether the engine stays on.
    pub is_probe: bool,
    /// The number of times that coalescing was switched off because it did not pay, without failed probes.
    pub switched_off: u64,
    /// The number of times that coalescing was switched on again because it paid.
    pub switched_on: u64,
    /// The number of probes while coalescing was off.
    pub probes: u64,
    /// Frames that bypassed the engine.
    pub passed: u64,
}

impl Default for Coalescing {
    fn default() -> Self {
        let (switched_off, switched_on, probes, passed) = (0, 0, 0, 0);
        let (asked, is_on, is_probe) = (Coalesce::On, true, false);
        Self { asked, is_on, is_probe, switched_off, switched_on, probes, passed }
    }
}

/// Combines the counts of two states with `apply`; all other values come from the first state.
impl Count for Coalescing {
    fn zip(&self, other: &Self, apply: fn(u64, u64) -> u64) -> Self {
        Self {
            switched_off: apply(self.switched_off, other.switched_off),
            switched_on: apply(self.switched_on, other.switched_on),
            probes: apply(self.probes, other.probes),
            passed: apply(self.passed, other.passed),
            ..*self
        }
    }

    fn single(&self) -> Option<u64> {
        None
    }
}

/// The totals of a worker at one instant, to be compared with the totals at the end of the previous interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// Frames from the nic that were not dropped.
    pub(super) frames: u64,
    /// The deliveries of these frames; while the engine is off, one for each frame.
    pub(super) deliveries: u64,
    /// The processor time of the worker's thread.
    pub(super) cpu: Duration,
}

/// Decides once per interval whether coalescing pays, that is, whether it saves more than it costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judge {
    state: State,
    /// The last totals; `None` at first, and after coalescing was switched, because an interval that contains
    /// both states decides nothing.
    last: Option<(Instant, Sample)>,
    /// The time for which the engine stays off before the next probe.
    pause: Duration,
    /// The largest number of frames so far in any interval that showed that coalescing does not pay, or in any
    /// interval of a probe.
    most_frames: u64,
    pub(super) switched_off: u64,
    pub(super) switched_on: u64,
    pub(super) probes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The engine is on. Counts the intervals in a row in which coalescing did not pay (`poor`), and in which
    /// it paid (`good`).
    On { poor: u32, good: u32 },
    /// The engine has been off since this instant.
    Off { since: Instant },
    /// The engine is on as a probe. Counts the probe's intervals so far, with their frames and deliveries.
    Probe { intervals: u32, frames: u64, deliveries: u64 },
}

/// The gain of coalescing in one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Yield {
    /// There was too little traffic to decide.
    Unknown,
    /// There were too few frames per delivery: the engine costs more than it saves.
    Poor,
    /// The frames per delivery are between the two limits.
    Middling,
    Good,
}

impl Judge {
    pub(super) const fn new() -> Self {
        Self {
            state: State::START,
            last: None,
            pause: SHORTEST_PAUSE,
            most_frames: 0,
            switched_off: 0,
            switched_on: 0,
            probes: 0,
        }
    }

    /// Returns a judge in its initial state, but with this judge's counts of changes.
    pub(super) const fn restarted(self) -> Self {
        let Self { switched_off, switched_on, probes, .. } = self;
        Self { switched_off, switched_on, probes, ..Self::new() }
    }

    /// Returns `true` if frames should go through the engine.
    pub(super) const fn is_on(&self) -> bool {
        !matches!(self.state, State::Off { .. })
    }

    pub(super) const fn is_probe(&self) -> bool {
        matches!(self.state, State::Probe { .. })
    }

    /// Processes the totals at time `now`. Afterwards [`Judge::is_on`] returns the decision.
    pub(super) fn observe(&mut self, now: Instant, totals: Sample) {
        let Some((then, before)) = self.last else {
            self.last = Some((now, totals));
            return;
        };
        let time = now.since(then);
        // Reports may come more often than once per interval.
        if time < INTERVAL {
            return;
        }
        self.last = Some((now, totals));
        let sample = Sample {
            frames: totals.frames.saturating_sub(before.frames),
            deliveries: totals.deliveries.saturating_sub(before.deliveries),
            cpu: totals.cpu.saturating_sub(before.cpu),
        };
        let was_on = self.is_on();
        self.decide(now, time, sample);
        if self.is_on() != was_on {
            self.last = None;
        }
    }

    fn decide(&mut self, now: Instant, time: Duration, sample: Sample) {
        let seen = sample.judged(time);
        match self.state {
            State::On { poor, good } => self.while_on(now, (poor, good), seen, sample.frames),
            State::Off { since } => {
                let off = now.since(since);
                let has_changed = off >= SHORTEST_PAUSE
                    && sample.is_enough(time)
                    && sample.frames > MUCH_MORE * self.most_frames;
                if off >= self.pause || has_changed {
                    self.probes += 1;
                    self.state = State::Probe { intervals: 0, frames: 0, deliveries: 0 };
                }
            }
            State::Probe { .. } if seen == Yield::Unknown => {}
            State::Probe { intervals, frames, deliveries } => {
                let (frames, deliveries) = (frames + sample.frames, deliveries + sample.deliveries);
                self.most_frames = self.most_frames.max(sample.frames);
                if intervals + 1 < PROBE_INTERVALS {
                    self.state = State::Probe { intervals: intervals + 1, frames, deliveries };
                } else if yielded(frames, deliveries) == Yield::Good {
                    self.switched_on += 1;
                    self.state = State::START;
                } else {
                    self.pause = (2 * self.pause).min(LONGEST_PAUSE);
                    self.state = State::Off { since: now };
                }
            }
        }
    }

    fn while_on(&mut self, now: Instant, (poor, good): (u32, u32), seen: Yield, frames: u64) {
        self.state = match seen {
            Yield::Unknown | Yield::Middling => State::On { poor, good },
            Yield::Good if good + 1 >= LONG => {
                (self.pause, self.most_frames) = (SHORTEST_PAUSE, 0);
                State::On { poor: 0, good: LONG }
            }
            Yield::Good => State::On { poor: 0, good: good + 1 },
            Yield::Poor => {
                self.most_frames = self.most_frames.max(frames);
                State::On { poor: poor + 1, good: 0 }
            }
        };
        if matches!(self.state, State::On { poor, .. } if poor >= POOR_INTERVALS) {
            if self.switched_off > 0 {
                self.pause = (2 * self.pause).min(LONGEST_PAUSE);
            }
            self.switched_off += 1;
            self.state = State::Off { since: now };
        }
    }
}

impl State {
    const START: Self = Self::On { poor: 0, good: 0 };
}

impl Sample {
    fn judged(self, time: Duration) -> Yield {
        if self.is_enough(time) { yielded(self.frames, self.deliveries) } else { Yield::Unknown }
    }

    /// Returns `true` if in `time` there was enough traffic, and enough work for the worker, for coalescing to
    /// save something.
    fn is_enough(self, time: Duration) -> bool {
        self.frames >= LEAST_FRAMES && self.cpu * LEAST_SHARE >= time
    }
}

fn yielded(frames: u64, deliveries: u64) -> Yield {
    let at_least = |thousandths: u64| 1_000 * frames >= thousandths * deliveries;
    match (at_least(GOOD_THOUSANDTHS), at_least(POOR_THOUSANDTHS)) {
        (true, _) => Yield::Good,
        (_, true) => Yield::Middling,
        _ => Yield::Poor,
    }
}

/// Limits of frames per delivery, in thousandths. The engine takes 20 to 40 ns for a frame that it cannot
/// coalesce, and up to 130 ns to checksum one that is not in the cache. A delivery costs at least 1 µs here,
/// and as much in the host's stack. So coalescing pays if one frame in 50 to 20 shares a delivery.
const POOR_THOUSANDTHS: u64 = 1_020;
const GOOD_THOUSANDTHS: u64 = 1_050;
/// The shortest interval for a decision: one second, less a tenth for a check that comes early.
const INTERVAL: Duration = Duration::from_millis(900);
/// The number of intervals in a row without gain after which coalescing is switched off.
const POOR_INTERVALS: u32 = 10;
/// The number of intervals of a probe.
const PROBE_INTERVALS: u32 = 2;
/// The number of intervals in a row with gain after which the next pause is short again.
const LONG: u32 = 30;
const SHORTEST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// The factor by which traffic must grow, compared with traffic that did not pay, to count as different
/// traffic.
const MUCH_MORE: u64 = 4;
/// Minimum number of frames in an interval that can decide something.
const LEAST_FRAMES: u64 = 1_000;
/// The divisor for the minimum load: an interval decides something only if the worker ran for at least 1/20
/// of it.
const LEAST_SHARE: u32 = 20;

#[cfg(test)]
mod tests;
