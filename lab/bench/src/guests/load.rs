//! The load of other processes while guests were measured, and the decision whether it permits verdicts on
//! times.

use std::fmt;

use rxo_testbed::MachineUse;
use serde::Serialize;

/// Processor time that other programs and the hypervisor used, in percent of all cores.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Load {
    others_percent: f64,
    stolen_percent: f64,
}

impl Load {
    pub(super) fn of(used: MachineUse) -> Self {
        let all = (used.elapsed * used.cores).as_secs_f64();
        let percent = |part: f64| if all > 0.0 { 100.0 * part / all } else { 0.0 };
        let [others_percent, stolen_percent] =
            [used.others, used.stolen].map(|time| percent(time.as_secs_f64()));
        Self { others_percent, stolen_percent }
    }

    pub(super) fn permits_verdict(self) -> bool {
        self.others_percent + self.stolen_percent < MOST_PERCENT
    }
}

/// Load in percent, as in `rxo-lab`, above which a difference between systems may be one between moments.
const MOST_PERCENT: f64 = 10.0;

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { others_percent, stolen_percent } = self;
        write!(
            f,
            "other processes used {others_percent:.0} % of the cores, and the hypervisor took \
             {stolen_percent:.0} %"
        )?;
        if !self.permits_verdict() {
            write!(f, ": no verdict on times; measure again when the machine is idle")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_busy_machine_permits_no_verdict() {
        let seen = |others_ms, stolen_ms| {
            let [others, stolen] = [others_ms, stolen_ms].map(Duration::from_millis);
            Load::of(MachineUse { cores: 2, elapsed: Duration::from_secs(10), others, stolen })
        };
        assert!(seen(0, 0).permits_verdict() && seen(1_000, 900).permits_verdict());
        let busy = seen(1_500, 600);
        assert!(!busy.permits_verdict());
        assert_eq!(
            busy.to_string(),
            "other processes used 8 % of the cores, and the hypervisor took 3 %: no verdict on times; \
             measure again when the machine is idle"
        );
        assert!(Load::of(MachineUse::default()).permits_verdict());
    }
}
