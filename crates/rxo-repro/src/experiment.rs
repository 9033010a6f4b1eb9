//! One experiment, from its plan to the end of the command: networks, measurements, drawings, what
//! is printed, and how it ends.
//!
//! An experiment is a [plan](Experiment) that knows how to measure itself in [`Turns`] and gives
//! [`Findings`]. What all reports have beside these stands in [`Report`], once.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use rxo_console::fault::partial;
use rxo_console::output;
use rxo_lab::{Privilege, become_root_in_user_namespace};
use serde::Serialize;

use crate::machine::Machine;
use crate::turns::Turns;
use crate::wrap::wrapped;

/// A plan that can be measured.
pub(crate) trait Experiment {
    /// What the measurements come to.
    type Findings: Findings;

    /// How many measurements there will be.
    ///
    /// # Errors
    /// When something that is to be studied is missing.
    fn steps(&self) -> Result<usize>;

    /// Measures everything. When the user wants an end, returns what there is.
    ///
    /// # Errors
    /// When a network cannot be built, or a transfer breaks or arrives wrong.
    fn measure(&self, turns: &Turns<'_>) -> Result<Self::Findings>;

    /// How it was done, a paragraph each.
    fn notes(&self, findings: &Self::Findings) -> Vec<String>;

    /// Where the report goes.
    fn output(&self) -> &Output;

    /// Whether private networks are needed.
    fn needs_networks(&self) -> bool {
        true
    }
}

/// Where a report goes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    /// Whether it is printed as JSON.
    pub(crate) json: bool,
    /// The directory that drawings are written to; `None` for an experiment that has none.
    pub(crate) drawings: Option<PathBuf>,
}

/// What was measured, and what follows from it.
pub(crate) trait Findings: Serialize {
    /// Tables, figures and statements as text, a paragraph each.
    fn paragraphs(&self) -> Vec<String>;

    /// Every drawing as SVG, with the name of its file.
    fn drawings(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// What it all means; the last paragraph.
    fn conclusion(&self) -> Option<String> {
        None
    }

    /// Whether every byte of every transfer arrived as it was sent.
    fn is_intact(&self) -> bool {
        true
    }

    /// Why a part is missing, if the user did not end it early.
    fn damage(&self) -> Option<String> {
        None
    }
}

/// Everything that was found, and how: text for people, JSON for machines.
#[derive(Debug, Serialize)]
struct Report<F> {
    #[serde(flatten)]
    findings: F,
    machine: Machine,
    /// How it was done, a paragraph each.
    notes: Vec<String>,
    /// The drawings that were written.
    files: Vec<String>,
    /// Why this is not everything.
    partial: Option<String>,
}

/// Measures `experiment`, writes its drawings and prints its report. When `stop` is set, reports
/// what was measured until then.
///
/// # Errors
/// When private networks cannot be made, a measurement fails, bytes arrived that were not sent, or a
/// file cannot be written; after the report, when a part of it is missing.
pub(crate) fn run<E: Experiment>(experiment: &E, stop: &AtomicBool) -> Result<()> {
    let privilege = if experiment.needs_networks() { privilege()? } else { "not needed" };
    let Output { json, drawings } = experiment.output();
    let turns = Turns::new(experiment.steps()?, *json, stop);
    let findings = experiment.measure(&turns)?;
    turns.finish();
    let files = drawings.as_deref().map(|out| draw(findings.drawings(), out));
    let report = Report {
        machine: Machine::read(privilege),
        notes: experiment.notes(&findings),
        files: files.transpose()?.unwrap_or_default(),
        partial: turns.why_ended().or_else(|| findings.damage()),
        findings,
    };
    print(&report, *json, || report.text())?;
    if !report.findings.is_intact() {
        bail!("bytes arrived that were not sent; please report this with the figures above");
    }
    report.partial.map_or(Ok(()), |why| Err(partial(why)))
}

/// Gets the right to make private networks, and says how. Call it before anything starts a thread:
/// only a process of one thread can get its own namespaces.
///
/// # Errors
/// When the system gives neither root nor user namespaces.
pub(crate) fn privilege() -> Result<&'static str> {
    Ok(match become_root_in_user_namespace()? {
        Privilege::Given => "root",
        Privilege::UserNamespace => "user-namespace",
    })
}

/// Prints a report, as JSON or as `text`.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn print(
    report: &impl Serialize,
    json: bool,
    text: impl FnOnce() -> String,
) -> Result<()> {
    if json { output::json_document(report) } else { output::text(&text()) }
}

impl<F: Findings> Report<F> {
    /// The findings, how they were made, and what they mean.
    fn text(&self) -> String {
        let mut parts = self.findings.paragraphs();
        let notes: Vec<String> = self.notes.iter().map(|note| wrapped(note)).collect();
        let mut how = vec![notes.join("\n")];
        if !self.files.is_empty() {
            how.push(format!("Written: {}", self.files.join(", ")));
        }
        how.extend(self.partial.iter().map(|why| format!("Partial: {why}.")));
        // Notes alone make one paragraph with the machine.
        let separator = if how.len() == 1 { "\n" } else { "\n\n" };
        how.push(self.machine.to_string());
        parts.push(how.join(separator));
        parts.extend(self.findings.conclusion().map(|text| wrapped(&text)));
        parts.join("\n\n")
    }
}

/// Writes every drawing, by its file's name, into the directory `out`, and says where.
///
/// # Errors
/// When the directory cannot be made or a file cannot be written.
fn draw(drawings: Vec<(String, String)>, out: &Path) -> Result<Vec<String>> {
    fs::create_dir_all(out).with_context(|| {
        format!("cannot make the directory {}; choose another with --out", out.display())
    })?;
    drawings
        .into_iter()
        .map(|(name, svg)| {
            let path = out.join(name);
            fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(path.display().to_string())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Found {
        rows: [u8; 2],
    }

    impl Findings for Found {
        fn paragraphs(&self) -> Vec<String> {
            vec!["a table".into()]
        }

        fn conclusion(&self) -> Option<String> {
            Some("What it means.".into())
        }
    }

    fn report() -> Report<Found> {
        Report {
            findings: Found { rows: [1, 2] },
            machine: Machine::read("root"),
            notes: vec!["How.".into(), "And where.".into()],
            files: Vec::new(),
            partial: None,
        }
    }

    #[test]
    fn text_has_the_findings_first_and_what_they_mean_last() {
        let machine = Machine::read("root");
        let expected = format!("a table\n\nHow.\nAnd where.\n{machine}\n\nWhat it means.");
        assert_eq!(report().text(), expected);
        let partial = Report {
            files: vec!["a.svg".into(), "b.svg".into()],
            partial: Some("stopped".into()),
            ..report()
        };
        let expected = format!(
            "a table\n\nHow.\nAnd where.\n\nWritten: a.svg, b.svg\n\nPartial: stopped.\n\n{machine}\n\n\
             What it means."
        );
        assert_eq!(partial.text(), expected);
    }

    #[test]
    fn json_has_findings_and_tail_side_by_side() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!((&json["rows"][1], &json["notes"][0]), (&2.into(), &"How.".into()));
        assert!(json["machine"]["cores"].is_u64() && json["partial"].is_null());
    }
}
