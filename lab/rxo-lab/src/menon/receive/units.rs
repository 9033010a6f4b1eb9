//! Cycles, as the paper counts, where the machine says how long one takes.

use std::fs;

/// What a cost for a packet is shown in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Units {
    cycles_per_ns: Option<f64>,
}

impl Units {
    /// Of this machine: the nominal clock that the kernel tells of the first processor. A processor
    /// that runs faster for a while does more cycles than these.
    pub(super) fn of_machine() -> Self {
        Self::of(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
    }

    fn of(cpuinfo: &str) -> Self {
        let line = cpuinfo.lines().find(|line| line.starts_with("cpu MHz"));
        let value = line.and_then(|line| line.split_once(':')?.1.trim().parse::<f64>().ok());
        Self { cycles_per_ns: value.filter(|mhz| *mhz > 0.0).map(|mhz| mhz / 1_000.0) }
    }

    /// What stands on an axis.
    pub(super) const fn label(self) -> &'static str {
        match self.cycles_per_ns {
            Some(_) => "cycles per packet",
            None => "ns per packet",
        }
    }

    /// So many nanoseconds in this unit.
    pub(super) fn of_ns(self, ns: f64) -> f64 {
        ns * self.cycles_per_ns.unwrap_or(1.0)
    }

    /// So many nanoseconds as cycles, if the machine says what those are.
    pub(super) fn cycles(self, ns: f64) -> Option<f64> {
        self.cycles_per_ns.map(|cycles| ns * cycles)
    }

    /// A sentence for the notes.
    pub(super) fn note(self) -> String {
        match self.cycles_per_ns {
            Some(cycles) => format!(
                "Cycles are processor time multiplied by the clock that the kernel tells, {cycles:.2} \
                 GHz."
            ),
            None => "This machine does not tell its clock: costs are in nanoseconds.".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_makes_cycles_of_time() {
        let known = Units::of("processor\t: 0\ncpu MHz\t\t: 2500.000\ncpu MHz\t\t: 1.0\n");
        assert_eq!(known.label(), "cycles per packet");
        assert!((known.of_ns(100.0) - 250.0).abs() < 1e-9);
        let unknown = Units::of("processor : 0\n");
        assert_eq!((unknown.label(), unknown.cycles(100.0)), ("ns per packet", None));
        assert!((unknown.of_ns(100.0) - 100.0).abs() < 1e-9);
    }
}
