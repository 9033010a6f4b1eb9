//! Formats the output of a run: headlines during the run, a table and two totals at its end.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::tally::Tally;

/// The steps of a run so far.
#[derive(Default)]
pub(super) struct Report {
    lines: Vec<Line>,
}

struct Line {
    name: &'static str,
    began: Instant,
    took: Duration,
    tally: Tally,
    outcome: Outcome,
    notes: Vec<String>,
}

/// The result of a step, with the reason if it did not pass.
enum Outcome {
    Passed,
    /// The step could not run on this machine, which is no failure.
    NotRun(String),
    Failed(String),
}

impl Report {
    /// Starts a step and prints its headline.
    pub(super) fn begin(&mut self, name: &'static str, about: &str) {
        println!("\n=== {name}: {about}");
        self.lines.push(Line {
            name,
            began: Instant::now(),
            took: Duration::ZERO,
            tally: Tally::default(),
            outcome: Outcome::Passed,
            notes: Vec::new(),
        });
    }

    /// Adds test counts to the current step.
    pub(super) fn count(&mut self, tally: Tally) {
        if let Some(line) = self.lines.last_mut() {
            line.tally += tally;
        }
    }

    /// Prints a note on the current step, and repeats it at the end of the run; for example, that a part of
    /// the step cannot run here.
    pub(super) fn note(&mut self, note: String) {
        println!("note: {note}");
        if let Some(line) = self.lines.last_mut() {
            line.notes.push(note);
        }
    }

    /// Marks the current step as not run because of `obstacle`. If the step then returns an error, it counts
    /// as failed.
    pub(super) fn not_run(&mut self, obstacle: String) {
        if let Some(line) = self.lines.last_mut() {
            line.outcome = Outcome::NotRun(obstacle);
        }
    }

    /// Ends the current step. Returns its duration; `None` if it failed or did not run.
    pub(super) fn end(&mut self, result: Result<()>) -> Option<Duration> {
        let line = self.lines.last_mut()?;
        line.took = line.began.elapsed();
        if let Err(error) = result {
            line.outcome = Outcome::Failed(format!("{error:#}"));
            // A step that fails without a failed test counts as one failure, because the last line of the run
            // must not show "0 failed".
            line.tally.failed = line.tally.failed.max(1);
        }
        println!("=== {}: {}", line.name, line.ending());
        matches!(line.outcome, Outcome::Passed).then_some(line.took)
    }

    /// Returns `true` if a step failed.
    pub(super) fn has_failed(&self) -> bool {
        self.lines.iter().any(|line| matches!(line.outcome, Outcome::Failed(_)))
    }

    /// Prints the table, the notes, and the totals as the last line.
    pub(super) fn print(&self) {
        print!("{}", self.summary());
    }

    fn summary(&self) -> String {
        let mut text = format!("\n{:<14}{:>9}{:>9}{:>9}\n", "step", "seconds", "passed", "failed");
        let mut total = Tally::default();
        for line in &self.lines {
            text += &line.row();
            total += line.tally;
        }
        let seconds: f64 = self.lines.iter().map(|line| line.took.as_secs_f64()).sum();
        text += &format!("{:<14}{seconds:>9.1}{:>9}{:>9}\n\n", "total", total.passed, total.failed);
        for line in &self.lines {
            for note in &line.notes {
                text += &format!("note ({}): {note}\n", line.name);
            }
            text += &line.remark();
        }
        if total.ignored > 0 {
            text += &format!("{} tests did not run: they are marked as ignored\n", total.ignored);
        }
        text + &format!("{} passed, {} failed\n", total.passed, total.failed)
    }
}

impl Line {
    /// Returns the result of the step for its closing line.
    fn ending(&self) -> String {
        let seconds = self.took.as_secs_f64();
        match &self.outcome {
            Outcome::Passed => format!("passed in {seconds:.1} s"),
            Outcome::NotRun(why) => format!("not run: {why}"),
            Outcome::Failed(why) => format!("FAILED in {seconds:.1} s: {why}"),
        }
    }

    /// Returns the step's row of the table.
    fn row(&self) -> String {
        let Tally { passed, failed, .. } = self.tally;
        if let Outcome::NotRun(_) = self.outcome {
            return format!("{:<14}{:>9}{:>9}{:>9}\n", self.name, "not run", "-", "-");
        }
        let seconds = self.took.as_secs_f64();
        format!("{:<14}{seconds:>9.1}{passed:>9}{failed:>9}\n", self.name)
    }

    /// Returns the lines about the step below the table; empty if it passed.
    fn remark(&self) -> String {
        let name = self.name;
        match &self.outcome {
            Outcome::Passed => String::new(),
            Outcome::NotRun(why) => format!("not run ({name}): {why}\n"),
            Outcome::Failed(why) => format!(
                "FAILED ({name}): {why}\n`cargo xtask test --only {name}` runs this step alone\n"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn the_last_line_is_the_total() {
        let mut report = Report::default();
        report.begin("fmt", "layout");
        assert!(report.end(Ok(())).is_some());
        report.begin("test", "tests");
        report.count(Tally { passed: 7, failed: 0, ignored: 1 });
        report.note("something".to_owned());
        assert!(report.end(Ok(())).is_some());
        let summary = report.summary();
        assert!(summary.ends_with("\n7 passed, 0 failed\n"), "{summary}");
        assert!(summary.contains("note (test): something"), "{summary}");
        assert!(summary.contains("1 tests did not run"), "{summary}");
        assert!(!report.has_failed());
    }

    #[test]
    fn a_failed_step_is_never_nothing_failed() {
        let mut report = Report::default();
        report.begin("clippy", "lints");
        assert!(report.end(Err(anyhow!("it is ugly"))).is_none());
        let summary = report.summary();
        assert!(summary.contains("FAILED (clippy): it is ugly"), "{summary}");
        assert!(summary.ends_with("\n0 passed, 1 failed\n"), "{summary}");
        assert!(report.has_failed());
    }

    #[test]
    fn a_step_that_cannot_run_has_not_passed() {
        let mut report = Report::default();
        report.begin("dpdk", "rivals");
        report.not_run("it is not installed".to_owned());
        assert!(report.end(Ok(())).is_none());
        let line = &report.lines[0];
        assert_eq!(line.ending(), "not run: it is not installed");
        let summary = report.summary();
        assert!(summary.contains("\ndpdk            not run        -        -\n"), "{summary}");
        assert!(summary.contains("\nnot run (dpdk): it is not installed\n"), "{summary}");
        assert!(summary.ends_with("\n0 passed, 0 failed\n"), "{summary}");
        assert!(!report.has_failed());
    }

    #[test]
    fn a_step_that_must_run_and_cannot_has_failed() {
        let mut report = Report::default();
        report.begin("live", "tests");
        report.not_run("there is no TUN".to_owned());
        assert!(report.end(Err(anyhow!("there is no TUN"))).is_none());
        let summary = report.summary();
        assert!(!summary.contains("not run"), "{summary}");
        assert!(summary.ends_with("\n0 passed, 1 failed\n"), "{summary}");
        assert!(report.has_failed());
    }

    #[test]
    fn a_step_that_ran_in_part_has_passed() {
        let mut report = Report::default();
        report.begin("tools", "tests");
        report.note("the tests `tshark` did not run".to_owned());
        report.count(Tally { passed: 2, failed: 0, ignored: 0 });
        assert!(report.end(Ok(())).is_some());
        assert!(report.lines[0].ending().starts_with("passed in "));
        assert!(report.summary().contains("note (tools): the tests `tshark` did not run"));
    }

    #[test]
    fn failed_tests_are_counted_as_they_are() {
        let mut report = Report::default();
        report.begin("live", "tests");
        report.count(Tally { passed: 1, failed: 2, ignored: 0 });
        report.end(Err(anyhow!("2 of 3")));
        assert!(report.summary().ends_with("\n1 passed, 2 failed\n"));
    }
}
