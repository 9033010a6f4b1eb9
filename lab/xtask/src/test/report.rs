//! What a run says about itself: headlines while it goes, a table and two totals at its end.

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
    failure: Option<String>,
    notes: Vec<String>,
}

impl Report {
    /// A step begins.
    pub(super) fn begin(&mut self, name: &'static str, about: &str) {
        println!("\n=== {name}: {about}");
        self.lines.push(Line {
            name,
            began: Instant::now(),
            took: Duration::ZERO,
            tally: Tally::default(),
            failure: None,
            notes: Vec::new(),
        });
    }

    /// Tests of the current step.
    pub(super) fn count(&mut self, tally: Tally) {
        if let Some(line) = self.lines.last_mut() {
            line.tally += tally;
        }
    }

    /// Something about the current step that must not be overlooked; it is repeated at the end.
    pub(super) fn note(&mut self, note: String) {
        println!("note: {note}");
        if let Some(line) = self.lines.last_mut() {
            line.notes.push(note);
        }
    }

    /// Ends the current step; how long it took, or `None` if it failed.
    pub(super) fn end(&mut self, result: Result<()>) -> Option<Duration> {
        let line = self.lines.last_mut()?;
        line.took = line.began.elapsed();
        line.failure = result.err().map(|error| format!("{error:#}"));
        // A step that fails without a failed test is still one failure: the last line of the run
        // must not say "0 failed".
        if line.failure.is_some() && line.tally.failed == 0 {
            line.tally.failed = 1;
        }
        match &line.failure {
            None => println!("=== {}: passed in {:.1} s", line.name, line.took.as_secs_f64()),
            Some(why) => {
                println!("=== {}: FAILED in {:.1} s: {why}", line.name, line.took.as_secs_f64());
            }
        }
        line.failure.is_none().then_some(line.took)
    }

    /// True when a step failed and ended the run.
    pub(super) fn has_failed(&self) -> bool {
        self.lines.iter().any(|line| line.failure.is_some())
    }

    /// Prints the table, what must not be overlooked, and the totals as the last line.
    pub(super) fn print(&self) {
        print!("{}", self.summary());
    }

    fn summary(&self) -> String {
        let mut text = format!("\n{:<14}{:>9}{:>9}{:>9}\n", "step", "seconds", "passed", "failed");
        let mut total = Tally::default();
        for line in &self.lines {
            let Tally { passed, failed, .. } = line.tally;
            let seconds = line.took.as_secs_f64();
            text += &format!("{:<14}{seconds:>9.1}{passed:>9}{failed:>9}\n", line.name);
            total += line.tally;
        }
        let seconds: f64 = self.lines.iter().map(|line| line.took.as_secs_f64()).sum();
        text += &format!("{:<14}{seconds:>9.1}{:>9}{:>9}\n\n", "total", total.passed, total.failed);
        for line in &self.lines {
            for note in &line.notes {
                text += &format!("note ({}): {note}\n", line.name);
            }
            if let Some(why) = &line.failure {
                let name = line.name;
                text += &format!("FAILED ({name}): {why}\n");
                text += &format!("`cargo xtask test --only {name}` runs this step alone\n");
            }
        }
        if total.ignored > 0 {
            text += &format!("{} tests did not run: they are marked as ignored\n", total.ignored);
        }
        text + &format!("{} passed, {} failed\n", total.passed, total.failed)
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
    fn failed_tests_are_counted_as_they_are() {
        let mut report = Report::default();
        report.begin("live", "tests");
        report.count(Tally { passed: 1, failed: 2, ignored: 0 });
        report.end(Err(anyhow!("2 of 3")));
        assert!(report.summary().ends_with("\n1 passed, 2 failed\n"));
    }
}
