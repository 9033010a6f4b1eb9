//! The plan of `rxo calibrate`, from its flags.

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use rxo_console::fault::usage;
use rxo_console::numbers::parse_time;
use rxo_console::paths;

use crate::experiment::Output;
use crate::flags::CalibrateFlags;
use crate::machine::Cores;

/// The work of `rxo calibrate`: the settings to measure, and the time for each.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The approximate duration of all measurements.
    pub(super) duration: Duration,
    pub(super) settings: &'static [Setting],
    pub(super) rounds: usize,
    /// Time for which one transfer through rxo is measured, after the warm-up.
    pub(super) window: Duration,
    /// Time for which one transfer through the kernel alone is measured. Longer, because its network is built only once.
    pub(super) kernel_window: Duration,
    /// Time for which a transfer runs before it is measured, so that the TCP windows have opened.
    pub(super) warm_up: Duration,
    /// Time for which the engine alone is measured in each round.
    pub(super) engine: Duration,
    pub(super) cores: Cores,
    pub(super) output: Output,
}

/// One way of receiving the same stream: a path, an MTU and an aggregation limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// Maximum length of an IP packet on the wire, in bytes.
    pub(super) mtu: u32,
    /// Maximum number of segments in an aggregate; 1 coalesces nothing.
    pub(super) max_segments: u16,
    pub(super) path: Path,
}

/// The limited rate of a stream, and the bursts in which the sender's kernel sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    pub(super) bytes_per_s: u64,
    /// `true` for bursts of what the rate allows in a millisecond; `false` for bursts of 64 KB at any rate, as Linux sends over
    /// short paths since 5.18.
    pub(super) is_fine: bool,
}

/// The path of a stream to its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// Through rxo, as fast as it goes.
    Rxo,
    /// Through the kernel alone.
    Kernel(Pace),
}

impl Setting {
    /// Returns `true` for a stream through the kernel alone.
    pub(super) const fn is_kernel(&self) -> bool {
        self.kernel_pace().is_some()
    }

    /// Returns the pace of a stream through the kernel alone; `None` for a stream through rxo.
    pub(super) const fn kernel_pace(&self) -> Option<Pace> {
        match self.path {
            Path::Rxo => None,
            Path::Kernel(pace) => Some(pace),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mtu, max_segments, path } = self;
        match path {
            Path::Rxo => write!(f, "MTU {mtu}, up to {max_segments} in one"),
            Path::Kernel(Pace { bytes_per_s, is_fine }) => {
                let (mb, fine) = (bytes_per_s / 1_000_000, if *is_fine { " fine" } else { "" });
                write!(f, "kernel {mb} MB/s{fine}, MTU {mtu}, up to {max_segments}")
            }
        }
    }
}

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If the time or the file is invalid; the message names the accepted values.
    pub(crate) fn from_flags(flags: &CalibrateFlags) -> Result<Self> {
        let CalibrateFlags { seconds, save, json } = flags;
        let all = parse_time(seconds)
            .filter(|time| (SHORTEST..=LONGEST).contains(time))
            .ok_or_else(|| usage(format!("--seconds {seconds}: choose 6 to 600")))?;
        let save = save.as_deref().map(|path| paths::for_file("--save", path)).transpose()?;
        let plan = Self {
            duration: all,
            settings: &SETTINGS,
            rounds: (all.as_secs_f64() / ROUND.as_secs_f64()).round().clamp(1.0, 25.0) as usize,
            window: SHORTEST_WINDOW,
            kernel_window: SHORTEST_WINDOW,
            warm_up: WARM_UP,
            engine: ENGINE,
            cores: Cores::choose(),
            output: Output { json: *json, save },
        };
        Ok(plan.with_windows())
    }

    /// Returns the plan without the kernel's own path, for a machine on which that path cannot be measured. All of the time is
    /// then for the settings through rxo.
    pub(super) fn without_kernel(&self) -> Self {
        let all = self.settings;
        let settings = all.split_at(all.partition_point(|one| !one.is_kernel())).0;
        Self { settings, ..self.clone() }.with_windows()
    }

    /// Divides the time among the settings of all rounds.
    fn with_windows(self) -> Self {
        let each = self.duration.div_f64((self.rounds * self.settings.len()) as f64);
        Self {
            window: each.saturating_sub(SET_UP + WARM_UP).max(SHORTEST_WINDOW),
            kernel_window: each.saturating_sub(WARM_UP).max(SHORTEST_WINDOW),
            ..self
        }
    }
}

/// The settings to measure. Through rxo: from 1 to 1/32 delivery per packet at one packet size, and other packet sizes
/// with equal delivery counts. Without both, the fit could not distinguish the cost of a packet from that of
/// a byte. Through the kernel: limits on its aggregates, for deliveries, and bursts of several lengths, for wake-ups.
/// Several rates, because a wake-up costs more after a longer sleep; at the highest there are so few that deliveries
/// matter. Those of the kernel are last.
const SETTINGS: [Setting; 21] = [
    through_rxo(1_500, 1),
    through_rxo(1_500, 2),
    through_rxo(1_500, 4),
    through_rxo(1_500, 8),
    through_rxo(1_500, 32),
    through_rxo(3_000, 1),
    through_rxo(3_000, 8),
    through_rxo(9_000, 1),
    through_rxo(9_000, 2),
    through_rxo(9_000, 6),
    through_kernel(1_500, 45, pace(5)),
    through_kernel(1_500, 45, pace(20)),
    through_kernel(1_500, 45, pace(100)),
    through_kernel(1_500, 45, pace(300)),
    through_kernel(1_500, 45, fine(5)),
    through_kernel(1_500, 45, fine(20)),
    through_kernel(1_500, 8, pace(60)),
    through_kernel(1_500, 2, pace(20)),
    through_kernel(1_500, 2, pace(300)),
    through_kernel(9_000, 7, pace(20)),
    through_kernel(9_000, 7, pace(100)),
];

const fn through_rxo(mtu: u32, max_segments: u16) -> Setting {
    Setting { mtu, max_segments, path: Path::Rxo }
}

const fn through_kernel(mtu: u32, max_segments: u16, pace: Pace) -> Setting {
    Setting { mtu, max_segments, path: Path::Kernel(pace) }
}

const fn pace(mb_per_s: u64) -> Pace {
    Pace { bytes_per_s: mb_per_s * 1_000_000, is_fine: false }
}

const fn fine(mb_per_s: u64) -> Pace {
    Pace { is_fine: true, ..pace(mb_per_s) }
}

const SHORTEST: Duration = Duration::from_secs(6);
const LONGEST: Duration = Duration::from_secs(600);
/// The approximate duration of a round. A longer calibration has more rounds of this duration.
const ROUND: Duration = Duration::from_secs(10);
/// The approximate time to build and remove the network for one measurement.
const SET_UP: Duration = Duration::from_millis(120);
const WARM_UP: Duration = Duration::from_millis(120);
const SHORTEST_WINDOW: Duration = Duration::from_millis(100);
const ENGINE: Duration = Duration::from_millis(150);

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(seconds: &str) -> CalibrateFlags {
        CalibrateFlags { seconds: seconds.into(), save: None, json: false }
    }

    #[test]
    fn a_longer_time_is_more_rounds() {
        let rounds = |seconds| Plan::from_flags(&flags(seconds)).unwrap().rounds;
        assert_eq!((rounds("6"), rounds("30"), rounds("90s")), (1, 3, 9));
    }

    #[test]
    fn the_time_is_used_with_and_without_the_kernels_path() {
        for seconds in ["10", "30", "95"] {
            let whole = Plan::from_flags(&flags(seconds)).unwrap();
            let rxo = whole.without_kernel();
            assert_eq!((whole.settings.len(), rxo.settings.len()), (21, 10));
            assert!(!rxo.settings.iter().any(Setting::is_kernel));
            for plan in [whole, rxo] {
                let each = |one: &Setting| match one.is_kernel() {
                    true => WARM_UP + plan.kernel_window,
                    false => SET_UP + WARM_UP + plan.window,
                };
                let all = plan.settings.iter().map(each).sum::<Duration>() * plan.rounds as u32;
                assert!(all.abs_diff(plan.duration) < Duration::from_millis(1), "{plan:?}");
            }
        }
    }

    /// One delivery for each wake-up, and one length of packets for each, would not distinguish their costs.
    #[test]
    fn the_kernels_path_is_measured_with_several_of_everything() {
        let kernel = || SETTINGS.iter().filter_map(|one| Some((one, one.kernel_pace()?)));
        let kinds = |of: fn((&Setting, Pace)) -> u64| {
            let mut all: Vec<u64> = kernel().map(of).collect();
            all.sort_unstable();
            all.dedup();
            all.len()
        };
        assert_eq!(kinds(|(one, _)| one.max_segments.into()), 4);
        assert_eq!(kinds(|(one, _)| one.mtu.into()), 2);
        assert_eq!(kinds(|(_, pace)| pace.bytes_per_s), 5);
        assert_eq!(kinds(|(_, pace)| pace.is_fine.into()), 2);
        assert_eq!(SETTINGS[14].to_string(), "kernel 5 MB/s fine, MTU 1500, up to 45");
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        for seconds in ["5", "601", "soon", "-5"] {
            let error = Plan::from_flags(&flags(seconds)).unwrap_err().to_string();
            assert_eq!(error, format!("--seconds {seconds}: choose 6 to 600"));
        }
    }
}
