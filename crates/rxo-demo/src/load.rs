//! The load that other processes caused while an experiment was measured, and the decision whether it permits
//! a verdict. The computations have no side effects.

use std::time::Duration;

use rxo_console::numbers::{ratio, rounded};
use rxo_testbed::MachineUse;
use serde::Serialize;

/// Processor time that other programs and the hypervisor used while an experiment was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Load {
    cores: u32,
    seconds: f64,
    /// Processor time of other processes, in percent of all cores.
    pub others_percent: f64,
    /// Processor time that the hypervisor took, in percent of all cores.
    pub stolen_percent: f64,
    /// `true` if the machine was idle enough for the measurements to support a verdict.
    pub permits_verdict: bool,
}

/// The part of the findings that depends on measured times. A busy machine distorts such times, so this part
/// then supports no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// Every figure of the findings depends on measured times.
    Everything,
    /// Only the named findings depend on measured times. The string completes the phrase "no verdict on …".
    Only(&'static str),
    /// No figure depends on measured times: all figures are counts, or come from captures or virtual time.
    Nothing,
}

impl Load {
    /// Returns the load that other processes caused during an experiment, from the machine's use of processor time.
    pub fn of(used: MachineUse) -> Self {
        let all = (used.elapsed * used.cores).as_secs_f64();
        // The kernel accounts in steps of 10 ms, so a short interval may seem to exceed 100 %.
        let percent = |time: Duration| (100.0 * ratio(time.as_secs_f64(), all)).min(100.0);
        let [others, stolen] = [used.others, used.stolen].map(percent);
        Self {
            cores: used.cores,
            seconds: rounded(used.elapsed.as_secs_f64(), 1),
            others_percent: rounded(others, 1),
            stolen_percent: rounded(stolen, 1),
            permits_verdict: others + stolen < MOST_PERCENT,
        }
    }

    /// Returns `true` if this load forbids a verdict. `timed` states which findings depend on measured times.
    pub fn forbids(&self, timed: Timed) -> bool {
        !self.permits_verdict && timed != Timed::Nothing
    }

    /// Returns one sentence about the load and its effect on the verdict. `timed` states which findings depend on
    /// measured times.
    pub fn line(&self, timed: Timed) -> String {
        let Self { others_percent, stolen_percent, .. } = self;
        let cores = match self.cores {
            1 => "the one core".to_owned(),
            2 => "the two cores".to_owned(),
            many => format!("the {many} cores"),
        };
        let stolen = if *stolen_percent < 0.5 {
            String::new()
        } else {
            format!(", and the hypervisor took {stolen_percent:.0} %")
        };
        let end = match timed {
            _ if !self.forbids(timed) => ".".to_owned(),
            Timed::Only(what) => format!(": no verdict on {what}. {AGAIN}"),
            _ => format!(": no verdict. {AGAIN}"),
        };
        format!(
            "Other processes used {others_percent:.0} % of {cores} during the rounds{stolen}{end}"
        )
    }
}

/// Returns the reason why verdicts on times are withheld: more than one turn in ten was disturbed. `None` if the
/// machine was idle enough. `loads` has the load during each turn, by the turn's name.
pub fn disturbance(loads: &[(String, Load)]) -> Option<String> {
    let busy: Vec<_> = loads.iter().filter(|(_, load)| !load.permits_verdict).collect();
    let percent = |load: &Load| load.others_percent + load.stolen_percent;
    let (turn, worst) = busy.iter().max_by(|a, b| percent(&a.1).total_cmp(&percent(&b.1)))?;
    (busy.len() > loads.len() / TOLERATED).then(|| {
        format!(
            "Other processes kept the machine busy in {} of {} turns, {:.0} % of it in {turn}.",
            busy.len(),
            loads.len(),
            percent(worst)
        )
    })
}

/// At most one in this number of turns may be disturbed, because a few outliers hardly change a median.
const TOLERATED: usize = 10;
/// Maximum load of other processes, in percent of all cores. Above this load, a difference between paths may
/// only show that they were measured at different times.
const MOST_PERCENT: f64 = 10.0;
const AGAIN: &str = "Measure again when the machine is idle.";

#[cfg(test)]
mod tests {
    use super::*;

    fn load(cores: u32, [others_ms, stolen_ms]: [u64; 2]) -> Load {
        let [others, stolen] = [others_ms, stolen_ms].map(Duration::from_millis);
        Load::of(MachineUse { cores, elapsed: Duration::from_secs(10), others, stolen })
    }

    #[test]
    fn a_busy_machine_permits_no_verdict() {
        let rows = [
            (2, [0, 0], true, "0 % of the two cores during the rounds."),
            (2, [1_980, 0], true, "10 % of the two cores during the rounds."),
            (2, [2_000, 0], false, "10 % of the two cores during the rounds: no verdict. Measure"),
            (2, [8_200, 0], false, "41 % of the two cores during the rounds: no verdict. Measure"),
            (
                1,
                [300, 300],
                true,
                "3 % of the one core during the rounds, and the hypervisor took 3 %.",
            ),
            (
                1,
                [600, 500],
                false,
                "6 % of the one core during the rounds, and the hypervisor took 5 %: no",
            ),
            (
                1,
                [0, 1_400],
                false,
                "0 % of the one core during the rounds, and the hypervisor took 14 %: no",
            ),
            (64, [10_000, 0], true, "2 % of the 64 cores during the rounds."),
            // More time than all cores have is a rounding error.
            (2, [30_000, 0], false, "100 % of the two cores during the rounds: no verdict."),
        ];
        for (cores, taken, permits, text) in rows {
            let load = load(cores, taken);
            let line = load.line(Timed::Everything);
            assert_eq!(load.permits_verdict, permits, "{line}");
            assert!(line.starts_with(&format!("Other processes used {text}")), "{line}");
        }
    }

    #[test]
    fn what_does_not_depend_on_time_keeps_its_verdict() {
        let [idle, busy] = [0, 8_200].map(|others_ms| load(2, [others_ms, 0]));
        let rates = Timed::Only("rates");
        assert_eq!(idle.line(rates), idle.line(Timed::Everything));
        let end = ": no verdict on rates. Measure again when the machine is idle.";
        assert!(busy.line(rates).ends_with(end), "{}", busy.line(rates));
        assert!(busy.forbids(rates) && !idle.forbids(Timed::Everything));
        let line = busy.line(Timed::Nothing);
        assert!(line.ends_with("during the rounds.") && !busy.forbids(Timed::Nothing), "{line}");
    }

    #[test]
    fn no_time_at_all_is_no_load() {
        assert!(Load::of(MachineUse::default()).permits_verdict);
    }

    #[test]
    fn json_says_what_was_seen() {
        let json = serde_json::to_value(load(2, [8_200, 400])).unwrap();
        assert_eq!((&json["others_percent"], &json["stolen_percent"]), (&41.0.into(), &2.0.into()));
        assert_eq!((&json["permits_verdict"], &json["seconds"]), (&false.into(), &10.0.into()));
    }

    #[test]
    fn one_disturbed_turn_in_ten_is_tolerated() {
        let loads = |busy: usize, idle: usize| -> Vec<_> {
            let turn = |number| if number < busy { ("busy", 8_000) } else { ("idle", 0) };
            let turns = (0..busy + idle).map(turn);
            turns.map(|(name, others_ms)| (name.to_owned(), load(2, [others_ms, 0]))).collect()
        };
        assert_eq!(disturbance(&loads(0, 3)), None);
        assert_eq!(disturbance(&loads(1, 9)), None);
        let why = "Other processes kept the machine busy in 2 of 10 turns, 40 % of it in busy.";
        assert_eq!(disturbance(&loads(2, 8)).as_deref(), Some(why));
        assert!(disturbance(&loads(1, 2)).is_some() && disturbance(&[]).is_none());
    }
}
