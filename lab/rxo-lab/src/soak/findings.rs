//! The result of a soak: a line for each round, tables, and the verdict.

use anyhow::{Result, bail};
use rxo_console::numbers::{grouped, rounded};
use rxo_console::output;
use rxo_console::table::Table;
use serde_json::json;

use super::counts::{Counts, complaint};
use super::load::Carried;
use super::resources::{self, Course, LEAST_ROUNDS, Sample};

/// Everything that was found so far.
pub(super) struct Findings {
    /// The counters before the first round.
    base: Counts,
    last: Counts,
    carried: Carried,
    rounds: usize,
    samples: Vec<Sample>,
}

impl Findings {
    /// Makes empty findings with the counters before the first round.
    pub(super) fn new(base: Counts) -> Self {
        let (carried, samples) = (Carried::default(), Vec::new());
        Self { base, last: base, carried, rounds: 0, samples }
    }

    /// Adds the results of a round.
    pub(super) fn add(&mut self, carried: Carried, counts: Counts, samples: Vec<Sample>) {
        self.carried += carried;
        self.last = counts;
        self.rounds += 1;
        self.samples.extend(samples);
    }

    /// Returns a line about all rounds so far.
    pub(super) fn line(&self) -> String {
        let Carried { connections, tcp_bytes, requests, to_host, to_peer, .. } = self.carried;
        let datagrams = to_host.sent + to_peer.sent;
        let missing = datagrams - to_host.received - to_peer.received;
        let at_s = self.samples.last().map_or(0.0, |sample| sample.at_s);
        let mut line = format!(
            "{at_s:>6.0} s: {} connections, {} MB, {} datagrams ({missing} missing), {} requests",
            grouped(connections),
            grouped(tcp_bytes / 1_000_000),
            grouped(datagrams),
            grouped(requests),
        );
        for sample in self.samples.iter().rev().take(PROCESSES).rev() {
            let Sample { process, memory_kib, descriptors, .. } = sample;
            line += &format!("; {process} {} KiB, {descriptors} fd", grouped(*memory_kib));
        }
        line
    }

    /// Checks the invariants that must hold after every round.
    ///
    /// # Errors
    /// If a counter does not add up, or a datagram was wrong or is unaccounted for.
    pub(super) fn holds(&self) -> Result<()> {
        let compared = self.last.compare(&self.base);
        if let Some(wrong) = compared.iter().find(|one| !one.holds()) {
            bail!("counters do not add up: {}: {} and {}", wrong.what, wrong.left, wrong.right);
        }
        let [host, peer] = self.last.excused(&self.base);
        let Carried { to_host, to_peer, .. } = &self.carried;
        let said = complaint("host", to_host, host).or_else(|| complaint("peer", to_peer, peer));
        said.map_or(Ok(()), |said| bail!(said))
    }

    /// Returns the verdict at the end.
    ///
    /// # Errors
    /// The errors of [`holds`](Self::holds), or if a resource grows.
    pub(super) fn verdict(&self) -> Result<()> {
        self.holds()?;
        let courses = resources::courses(&self.samples);
        let grown: Vec<String> = courses.iter().filter(|one| !one.is_flat()).map(growth).collect();
        if !grown.is_empty() {
            bail!("not flat after the warm-up: {}", grown.join("; "));
        }
        Ok(())
    }

    /// Prints tables, or a JSON document.
    pub(super) fn print(&self, is_json: bool) -> Result<()> {
        if is_json {
            return output::json_document(&json!({
                "rounds": self.rounds,
                "carried": self.carried,
                "compared": self.last.compare(&self.base),
                "excused": self.last.excused(&self.base),
                "counts": self.last,
                "courses": resources::courses(&self.samples),
                "samples": self.samples,
            }));
        }
        output::text(&format!("{}\n{}\n{}", self.traffic(), self.compared(), self.courses()))
    }

    fn traffic(&self) -> String {
        let mut table = Table::new(&["carried", "count", "bytes", "missing"]);
        let Carried { connections, tcp_bytes, to_host, to_peer, requests, .. } = self.carried;
        let dash = || "-".to_owned();
        let mut row = |name: &str, count, bytes: Option<u64>, missing: Option<u64>| {
            let number = |of: Option<u64>| of.map_or_else(dash, grouped);
            table.row([name.to_owned(), grouped(count), number(bytes), number(missing)]);
        };
        row("TCP connections", connections, Some(tcp_bytes), None);
        row("HTTP requests", requests, Some(self.carried.request_bytes), None);
        row("datagrams to the host", to_host.sent, None, Some(to_host.sent - to_host.received));
        row("datagrams to the peer", to_peer.sent, None, Some(to_peer.sent - to_peer.received));
        row("questions to rxo", self.carried.questions, None, None);
        row("answers that came late", self.carried.late_answers, None, None);
        table.render()
    }

    fn compared(&self) -> String {
        let mut table = Table::new(&["counters", "left", "right", ""]);
        for one in self.last.compare(&self.base) {
            let verdict = if one.holds() { "equal" } else { "NOT EQUAL" };
            let (left, right) = (grouped(one.left), grouped(one.right));
            table.row([one.what.to_owned(), left, right, verdict.to_owned()]);
        }
        table.render()
    }

    fn courses(&self) -> String {
        let head = ["process", "", "after the warm-up", "at the end", "grew by", ""];
        let mut table = Table::new(&head);
        for course in resources::courses(&self.samples) {
            let verdict = match (course.growth, course.is_flat()) {
                (None, _) => format!("not judged: fewer than {LEAST_ROUNDS} rounds"),
                (Some(_), true) => "flat".to_owned(),
                (Some(_), false) => "GROWS".to_owned(),
            };
            let grew = course.growth.map_or("-".to_owned(), |by| rounded(by, 1).to_string());
            let (first, last) = (course.first.to_string(), course.last.to_string());
            table.row([course.process.into(), course.what.into(), first, last, grew, verdict]);
        }
        table.render()
    }
}

fn growth(course: &Course) -> String {
    let Course { process, what, first, last, growth, most } = course;
    let by = rounded(growth.unwrap_or_default(), 1);
    format!("{process}: {what} {first} to {last}, certainly by {by}, and {most} are allowed")
}

/// Number of rxo's processes, each sampled once per round.
const PROCESSES: usize = 4;

#[cfg(test)]
mod tests {
    use rxo_peers::DatagramReport;

    use super::*;

    fn findings(rounds: u64, memory_kib: impl Fn(u64) -> u64) -> Findings {
        let mut findings = Findings::new(Counts::default());
        for round in 1..=rounds {
            let sample = Sample {
                process: "worker",
                at_s: round as f64,
                memory_kib: memory_kib(round),
                peak_kib: 0,
                descriptors: 9,
                threads: 2,
            };
            let to_host = DatagramReport { sent: 10, received: 9, ..DatagramReport::default() };
            let carried = Carried { connections: 5, to_host, ..Carried::default() };
            let counts = Counts { host_not_taken: round, ..Counts::default() };
            findings.add(carried, counts, vec![sample]);
        }
        findings
    }

    #[test]
    fn what_is_counted_and_flat_passes() {
        let findings = findings(30, |_| 9_000);
        findings.verdict().unwrap();
        let line = findings.line();
        assert!(
            line.contains("30 s: 150 connections") && line.contains("300 datagrams (30 missing)")
        );
        let courses = findings.courses();
        assert_eq!(courses.matches("flat").count(), 3, "{courses}");
    }

    #[test]
    fn what_grows_fails_and_is_named() {
        let said = findings(30, |round| 9_000 + 100 * round).verdict().unwrap_err().to_string();
        assert!(
            said.starts_with("not flat after the warm-up: worker: memory, KiB 10000 to"),
            "{said}"
        );
    }

    #[test]
    fn what_is_not_equal_fails_at_once() {
        let mut findings = findings(3, |_| 9_000);
        findings.last.peer.sent += 1;
        let said = findings.holds().unwrap_err().to_string();
        assert_eq!(said, "counters do not add up: sent by the peer = received by the nic: 1 and 0");
        assert!(findings.compared().contains("NOT EQUAL"));
    }

    #[test]
    fn a_datagram_that_nobody_counts_fails() {
        let mut findings = findings(3, |_| 9_000);
        findings.carried.to_host.received -= 1;
        assert!(findings.holds().unwrap_err().to_string().contains("4 are missing"));
    }

    #[test]
    fn few_rounds_are_not_judged() {
        assert!(findings(4, |_| 9_000).courses().contains("not judged"));
    }
}
