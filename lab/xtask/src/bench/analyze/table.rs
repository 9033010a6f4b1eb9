//! The measurements, as a table and as JSON.

use serde_json::{Value, json};

use super::measure::Run;

/// The measurements of one program.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    packets: u64,
    pub(super) median_s: f64,
    least_s: f64,
    most_s: f64,
    pub(super) peak_mb: f64,
}

impl Row {
    pub(super) fn new(name: &'static str, packets: u64, runs: &[Run]) -> Self {
        let mut seconds: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        let at = |index: usize| seconds.get(index).copied().unwrap_or(f64::NAN);
        let peak = runs.iter().map(|run| run.peak_bytes).max().unwrap_or_default();
        Self {
            name,
            packets,
            median_s: at(seconds.len() / 2),
            least_s: at(0),
            most_s: at(seconds.len().saturating_sub(1)),
            peak_mb: peak as f64 / 1e6,
        }
    }

    fn ns_per_packet(&self) -> f64 {
        self.median_s * 1e9 / self.packets as f64
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "name": self.name,
            "packets": self.packets,
            "median_s": self.median_s,
            "least_s": self.least_s,
            "most_s": self.most_s,
            "ns_per_packet": self.ns_per_packet(),
            "peak_mb": self.peak_mb,
        })
    }
}

/// A measured number, and its upper or lower limit.
#[derive(Clone, Debug)]
pub(super) struct Target {
    name: &'static str,
    value: f64,
    bound: Bound,
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    Most(f64),
    Least(f64),
}

impl Target {
    pub(super) const fn at_most(name: &'static str, value: f64, most: f64) -> Self {
        Self { name, value, bound: Bound::Most(most) }
    }

    pub(super) const fn at_least(name: &'static str, value: f64, least: f64) -> Self {
        Self { name, value, bound: Bound::Least(least) }
    }

    fn is_met(&self) -> bool {
        match self.bound {
            Bound::Most(most) => self.value <= most,
            Bound::Least(least) => self.value >= least,
        }
    }

    pub(super) fn json(&self) -> Value {
        let (bound, limit) = match self.bound {
            Bound::Most(most) => ("most", most),
            Bound::Least(least) => ("least", least),
        };
        json!({ "name": self.name, "value": self.value, bound: limit, "met": self.is_met() })
    }
}

/// Formats the measurements and the targets as a table.
pub(super) fn text(rows: &[Row], targets: &[Target]) -> String {
    let mut lines = vec![format!(
        "{:<28} {:>8}  {:<15} {:>9} {:>8}",
        "", "median", "least - most", "ns/packet", "peak MB"
    )];
    for row in rows {
        let spread = format!("{:.2} - {:.2}", row.least_s, row.most_s);
        let (median, ns, peak) = (row.median_s, row.ns_per_packet(), row.peak_mb);
        lines.push(format!("{:<28} {median:>6.2} s  {spread:<15} {ns:>9.0} {peak:>8.0}", row.name));
    }
    lines.push(String::new());
    for target in targets {
        let said = if target.is_met() { "met" } else { "FALLS SHORT" };
        let bound = match target.bound {
            Bound::Most(most) => format!("at most {most:.2}"),
            Bound::Least(least) => format!("at least {least:.2}"),
        };
        lines.push(format!("{}: {:.2}, {bound}: {said}", target.name, target.value));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_targets_are_what_was_measured() {
        let run = |seconds| Run { seconds, peak_bytes: (seconds * 1e6) as u64 };
        let row = Row::new("x", 1_000, &[run(3.0), run(1.0), run(2.0)]);
        assert!((row.median_s - 2.0).abs() < 1e-9 && (row.peak_mb - 3.0).abs() < 1e-9);
        assert!((row.ns_per_packet() - 2e6).abs() < 1e-3);
        assert!(Target::at_most("a", 1.0, 1.0).is_met());
        let text = text(&[row], &[Target::at_most("b", 1.1, 1.0)]);
        assert!(text.ends_with("b: 1.10, at most 1.00: FALLS SHORT"), "{text}");
        assert!(!Target::at_most("nothing measured", f64::NAN, 1.0).is_met());
        assert!(!Target::at_least("nothing measured", f64::NAN, 1.0).is_met());
        assert!(Target::at_least("c", 2.0, 1.0).is_met());
    }
}
