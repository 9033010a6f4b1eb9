//! Runs an experiment from its plan to its report: measurements, output, and exit code.
//!
//! An [`Experiment`] is a plan that can measure itself in [`Turns`] and returns [`Findings`]. `Report` adds
//! the parts that all reports share.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use rxo_console::fault::partial;
use rxo_console::{files, output};
use rxo_testbed::{MachineReading, Privilege, become_root_in_user_namespace};
use serde::Serialize;

use crate::load::{Load, Timed};
use crate::machine::Machine;
use crate::turns::Turns;
use crate::wrap::wrapped;

/// An experiment: a plan that can be measured.
pub trait Experiment {
    /// The result type of the measurements.
    type Findings: Findings;

    /// Returns the number of measurements that the experiment makes.
    ///
    /// # Errors
    /// If an input of the experiment is missing.
    fn steps(&self) -> Result<usize>;

    /// Runs all measurements and returns their results. If the user interrupts, returns the results so far.
    ///
    /// # Errors
    /// If a network cannot be built, or a transfer breaks or arrives wrong.
    fn measure(&self, turns: &Turns<'_>) -> Result<Self::Findings>;

    /// Returns notes on the method of the experiment, one paragraph each.
    fn notes(&self, findings: &Self::Findings) -> Vec<String>;

    /// Returns the output to which the report is written.
    fn output(&self) -> &Output;

    /// Returns `true` if the experiment needs network namespaces.
    fn needs_networks(&self) -> bool {
        true
    }
}

/// The output of an experiment's report: its form, and the files to write.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// `true` for JSON on standard output, `false` for text.
    pub json: bool,
    /// File in which the report is saved as JSON; `None` saves nothing.
    pub save: Option<PathBuf>,
}

/// The results of an experiment: the measured figures, and the conclusions.
pub trait Findings: Serialize {
    /// Formats the findings as tables and sentences, one paragraph each.
    fn paragraphs(&self) -> Vec<String>;

    /// Withdraws every verdict that depends on measured times, but keeps the figures. Called if other processes kept
    /// the machine busy during the measurements.
    fn withhold(&mut self);

    /// Returns the part of the findings that depends on measured times.
    fn timed(&self) -> Timed {
        Timed::Everything
    }

    /// Returns the conclusion, which becomes the last paragraph of the report; `None` if there is none.
    fn conclusion(&self) -> Option<String> {
        None
    }

    /// Returns `true` if every byte of every transfer arrived as it was sent.
    fn is_intact(&self) -> bool {
        true
    }

    /// Returns the reason why a part of the findings is missing; `None` if no part is missing, or if the user's
    /// interruption is the only cause.
    fn damage(&self) -> Option<String> {
        None
    }
}

/// The report of an experiment: its findings, the machine and the method; text for people, JSON for programs.
#[derive(Debug, Serialize)]
struct Report<F> {
    #[serde(flatten)]
    findings: F,
    machine: Machine,
    /// Load of the machine by other processes during the measurements; `None` if nothing was timed.
    load: Option<Load>,
    /// Notes on the method, one paragraph each.
    notes: Vec<String>,
    /// The reason why the report is incomplete; `None` if it is complete.
    partial: Option<String>,
}

/// Measures `experiment` and prints its report. If `stop` is set, reports the measurements that were made
/// before.
///
/// # Errors
/// If network namespaces cannot be created, a measurement fails, bytes arrived wrong, or a file cannot be written. A
/// report with a missing part is printed before the error is returned.
pub fn run<E: Experiment>(experiment: &E, stop: &AtomicBool) -> Result<()> {
    let privilege = if experiment.needs_networks() { privilege()? } else { "not needed" };
    let Output { json, save } = experiment.output();
    let turns = Turns::new(experiment.steps()?, *json, stop);
    let before = experiment.needs_networks().then(MachineReading::now).transpose()?;
    let mut findings = experiment.measure(&turns)?;
    turns.finish();
    let load = before.map(|before| MachineReading::now().map(|now| now.since(&before)));
    let load = load.transpose()?.map(Load::of);
    if load.is_some_and(|load| load.forbids(findings.timed())) {
        findings.withhold();
    }
    let report = Report {
        machine: Machine::read(privilege),
        load,
        notes: experiment.notes(&findings),
        partial: turns.end_reason().or_else(|| findings.damage()),
        findings,
    };
    print(&report, *json, || report.text())?;
    if !report.findings.is_intact() {
        bail!("bytes arrived that were not sent; please report this with the figures above");
    }
    save.as_deref().map_or(Ok(()), |path| report.save(path))?;
    report.partial.map_or(Ok(()), |why| Err(partial(why)))
}

/// Obtains the privilege to create network namespaces. Returns "root" if the process is root, otherwise
/// "user-namespace". Must be called before any thread starts, because only a single-threaded process can
/// enter a user namespace.
///
/// # Errors
/// If the process is not root and the system allows no user namespaces.
pub fn privilege() -> Result<&'static str> {
    Ok(match become_root_in_user_namespace()? {
        Privilege::Given => "root",
        Privilege::UserNamespace => "user-namespace",
    })
}

/// Prints a report, as JSON if `json`, otherwise as `text`.
///
/// # Errors
/// If standard output cannot be written.
fn print(report: &impl Serialize, json: bool, text: impl FnOnce() -> String) -> Result<()> {
    if json { output::json_document(report) } else { output::text(&text()) }
}

impl<F: Findings> Report<F> {
    /// Returns the report as text: the findings, the method, and the conclusion.
    fn text(&self) -> String {
        let mut parts = self.findings.paragraphs();
        let notes: Vec<String> = self.notes.iter().map(|note| wrapped(note)).collect();
        let mut how = vec![notes.join("\n")];
        how.extend(self.partial.iter().map(|why| format!("Partial: {why}.")));
        // With nothing but notes, they share a paragraph with the machine's line.
        let separator = if how.len() == 1 { "\n" } else { "\n\n" };
        let timed = self.findings.timed();
        let (busy, quiet) = match self.load {
            Some(load) if load.forbids(timed) => (Some(load.line(timed)), String::new()),
            Some(load) => (None, format!("\n{}", load.line(timed))),
            None => (None, String::new()),
        };
        how.push(format!("{}{quiet}", self.machine));
        parts.push(how.join(separator));
        parts.extend(busy.or_else(|| self.findings.conclusion()).map(|text| wrapped(&text)));
        parts.join("\n\n")
    }

    /// Saves the report as JSON in the file `path`, completely or not at all.
    ///
    /// # Errors
    /// If the machine was too busy for a verdict, or the file cannot be written.
    fn save(&self, path: &Path) -> Result<()> {
        let not_saved = || format!("--save {}: the figures were not saved", path.display());
        let timed = self.findings.timed();
        if let Some(load) = self.load.filter(|load| load.forbids(timed)) {
            return Err(partial(load.line(timed))).with_context(not_saved);
        }
        let text = serde_json::to_string_pretty(self)? + "\n";
        files::replace(path, |file| file.write_all(text.as_bytes())).with_context(not_saved)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use rxo_testbed::MachineUse;

    use super::*;

    #[derive(Serialize)]
    struct Found {
        rows: [u8; 2],
    }

    impl Findings for Found {
        fn paragraphs(&self) -> Vec<String> {
            vec!["a table".into()]
        }

        fn withhold(&mut self) {}

        fn conclusion(&self) -> Option<String> {
            Some("What it means.".into())
        }
    }

    /// Returns the load of two cores over ten seconds in which other processes used `others_s` of processor time.
    fn load(others_s: u64) -> Option<Load> {
        let [elapsed, others] = [10, others_s].map(Duration::from_secs);
        let used = MachineUse { cores: 2, elapsed, others, ..MachineUse::default() };
        Some(Load::of(used))
    }

    fn report() -> Report<Found> {
        Report {
            findings: Found { rows: [1, 2] },
            machine: Machine::read("root"),
            load: None,
            notes: vec!["How.".into(), "And where.".into()],
            partial: None,
        }
    }

    #[test]
    fn text_has_the_findings_first_and_what_they_mean_last() {
        let machine = Machine::read("root");
        let expected = format!("a table\n\nHow.\nAnd where.\n{machine}\n\nWhat it means.");
        assert_eq!(report().text(), expected);
        let partial = Report { partial: Some("stopped".into()), ..report() };
        let expected = format!(
            "a table\n\nHow.\nAnd where.\n\nPartial: stopped.\n\n{machine}\n\nWhat it means."
        );
        assert_eq!(partial.text(), expected);
    }

    #[test]
    fn on_a_busy_machine_the_last_paragraph_says_so_and_nothing_else() {
        let machine = Machine::read("root");
        let quiet = Report { load: load(1), ..report() }.text();
        let line = "Other processes used 5 % of the two cores during the rounds.";
        assert!(quiet.ends_with(&format!("{machine}\n{line}\n\nWhat it means.")), "{quiet}");
        let busy = Report { load: load(8), ..report() };
        let line = wrapped(&busy.load.unwrap().line(Timed::Everything));
        assert!(busy.text().starts_with("a table\n\n"), "figures are printed all the same");
        assert!(busy.text().ends_with(&format!("{machine}\n\n{line}")), "{}", busy.text());
        assert!(line.contains("used 40 % of the two cores during the rounds: no verdict"));
        let json = serde_json::to_value(busy).unwrap();
        assert_eq!(json["load"]["permits_verdict"], false);
    }

    /// Findings whose figures do not depend on time.
    #[derive(Serialize)]
    struct Counted;

    impl Findings for Counted {
        fn paragraphs(&self) -> Vec<String> {
            Vec::new()
        }

        fn withhold(&mut self) {}

        fn timed(&self) -> Timed {
            Timed::Nothing
        }

        fn conclusion(&self) -> Option<String> {
            Some("What it means.".into())
        }
    }

    #[test]
    fn a_busy_machine_withholds_nothing_that_was_counted() {
        let Report { machine, notes, partial, .. } = report();
        let counted = Report { findings: Counted, machine, notes, partial, load: load(8) };
        let text = counted.text();
        assert!(text.ends_with("during the rounds.\n\nWhat it means."), "{text}");
    }

    #[test]
    fn a_report_is_saved_unless_the_machine_was_busy() {
        let path = std::env::temp_dir().join(format!("rxo-report-{}.json", std::process::id()));
        let busy = Report { load: load(8), ..report() };
        let error = format!("{:#}", busy.save(&path).unwrap_err());
        assert!(!path.exists() && !error.contains('\n'), "{error}");
        assert!(error.starts_with(&format!("--save {}: the figures were not", path.display())));
        assert!(error.ends_with("no verdict. Measure again when the machine is idle."), "{error}");
        let idle = Report { load: load(1), ..report() };
        idle.save(&path).unwrap();
        let saved = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let saved: serde_json::Value = serde_json::from_str(&saved).unwrap();
        assert_eq!(saved, serde_json::to_value(&idle).unwrap());
    }

    #[test]
    fn json_has_findings_and_tail_side_by_side() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!((&json["rows"][1], &json["notes"][0]), (&2.into(), &"How.".into()));
        assert!(json["machine"]["cores"].is_u64() && json["partial"].is_null());
    }
}
