//! Converts nanoseconds to cycles, the paper's unit, if the machine's clock rate is known.

use std::fs;

/// The unit in which a cost per packet is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Units {
    cycles_per_ns: Option<f64>,
}

impl Units {
    /// Reads the nominal clock rate of the first processor from the kernel. A processor that runs faster than
    /// this at times executes more cycles.
    pub(super) fn of_machine() -> Self {
        Self::of(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
    }

    fn of(cpuinfo: &str) -> Self {
        let line = cpuinfo.lines().find(|line| line.starts_with("cpu MHz"));
        let value = line.and_then(|line| line.split_once(':')?.1.trim().parse::<f64>().ok());
        Self { cycles_per_ns: value.filter(|mhz| *mhz > 0.0).map(|mhz| mhz / 1_000.0) }
    }

    /// Returns the label of an axis in this unit.
    pub(super) const fn label(self) -> &'static str {
        match self.cycles_per_ns {
            Some(_) => "cycles per packet",
            None => "ns per packet",
        }
    }

    /// Converts nanoseconds to this unit.
    pub(super) fn of_ns(self, ns: f64) -> f64 {
        ns * self.cycles_per_ns.unwrap_or(1.0)
    }

    /// Converts nanoseconds to cycles; `None` if the clock rate is unknown.
    pub(super) fn cycles(self, ns: f64) -> Option<f64> {
        self.cycles_per_ns.map(|cycles| ns * cycles)
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
