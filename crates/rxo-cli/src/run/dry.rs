//! `--dry-run`: prints the configuration that the run would use, and the findings of examining the machine
//! and its interfaces. Changes nothing and takes no lock.

use anyhow::Result;
use rxo_driver::Origin;
use rxo_driver::custody::{self, Custody};
use serde::Serialize;

use super::configuration::Configuration;
use super::plan::Plan;
use super::survey::Survey;
use crate::exit::usage;
use crate::findings::Findings;
use crate::output;

/// Examines everything that the run would use, and prints the result.
///
/// # Errors
/// The errors with which the run itself would fail at once.
pub(super) fn run(mut plan: Plan) -> Result<()> {
    left(&plan)?;
    let survey = Survey::of(&plan)?;
    plan.policy = survey.carried(&plan)?;
    plan.addresses.check()?;
    let claim = plan.claim(&survey);
    let findings = Findings::of_run(claim)?;
    let examined = Custody::examine(claim);
    let configuration =
        examined.as_ref().ok().map(|custody| Configuration::new(&plan, &survey, Some(custody)));
    show(configuration.as_ref(), &findings, plan.json)?;
    examined?;
    Ok(())
}

/// Refuses a nic that a killed run has left under another name, because such a nic cannot be examined.
fn left(plan: &Plan) -> Result<()> {
    let nic = &plan.nic;
    let is_existing = nic.kind().interface == Some(Origin::Existing);
    match custody::left(nic).filter(|_| is_existing) {
        None => Ok(()),
        Some(left) => Err(usage(format!("--nic {nic}: {left}"))),
    }
}

/// Prints the configuration and the findings. A run that would be refused has no configuration.
fn show(configuration: Option<&Configuration>, findings: &Findings, json: bool) -> Result<()> {
    if json {
        let kind = configuration.is_none().then_some("refused");
        return output::json_document(&Report { kind, configuration, findings });
    }
    let mut parts = Vec::from_iter(configuration.map(Configuration::text));
    parts.push(findings.text());
    output::text(&parts.join("\n\n"))
}

/// The configuration and the findings as JSON.
#[derive(Serialize)]
struct Report<'a> {
    /// The string "refused" if there is no configuration; otherwise `None`, because the configuration has its
    /// own `kind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(flatten)]
    configuration: Option<&'a Configuration>,
    findings: &'a Findings,
}
