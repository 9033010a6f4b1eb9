//! Findings of `rxo doctor` and `--dry-run`: what an examination of the machine found, as text and as JSON.

use anyhow::Result;
use rxo_driver::custody::{Claim, Custody};
use rxo_driver::{DeviceName, Finding, Origin, State, machine};
use serde::{Serialize, Serializer};

use crate::exit::{breaks, partial};
use crate::table::Table;

/// The findings of an examination of the machine and its interfaces.
#[derive(Debug)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    /// Examines the machine alone. If there is an `interface`, also tests whether the kernel's stack can be
    /// kept off that interface.
    pub(crate) fn of_machine(interface: Option<&str>) -> Self {
        Self(machine::offers(interface))
    }

    /// Examines the machine, the interfaces that `claim` lists for a run, and finds everything that the run
    /// would break.
    ///
    /// # Errors
    /// If an interface does not exist, or the system refuses to describe its devices.
    pub(crate) fn of_run(claim: Claim<'_>) -> Result<Self> {
        let is_existing = |device: &&DeviceName| device.kind().interface == Some(Origin::Existing);
        let devices = [claim.nic.1, claim.host.1].into_iter().filter(is_existing);
        let first = devices.clone().next().filter(|_| claim.isolates);
        let mut all = Self::of_machine(first.map(DeviceName::name));
        for device in devices {
            all.0.extend(machine::nic(device)?);
        }
        all.0.extend(Custody::findings(claim)?);
        Ok(all)
    }

    pub(crate) fn push(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    /// Returns the findings as a text table.
    pub(crate) fn text(&self) -> String {
        let mut table = Table::new(&["check", "of", "state", "found"]);
        for one in &self.0 {
            let of = one.device.as_deref().unwrap_or("machine");
            let state = one.state.name();
            table.row([one.name.to_owned(), of.to_owned(), state.to_owned(), one.to_string()]);
        }
        table.render()
    }

    /// Returns the result of the examination; the error determines the exit code. `run` names the examined
    /// run in the message.
    ///
    /// # Errors
    /// If a finding would make the run fail or break something, or a check could not be made.
    pub(crate) fn verdict(&self, run: &str) -> Result<()> {
        match (self.in_state(State::Breaks), self.in_state(State::NotRun)) {
            (broken, _) if !broken.is_empty() => {
                let names = broken.join(", ");
                Err(breaks(format!(
                    "`{run}` would fail or break something: {names}; the remedies stand beside them"
                )))
            }
            (_, not_run) if !not_run.is_empty() => {
                let names = not_run.join(", ");
                Err(partial(format!("not looked at for want of privilege: {names}; run as root")))
            }
            _ => Ok(()),
        }
    }

    fn in_state(&self, state: State) -> Vec<&'static str> {
        self.0.iter().filter(|one| one.state == state).map(|one| one.name).collect()
    }
}

/// Serializes the findings as a list of objects.
impl Serialize for Findings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(FindingRow::of))
    }
}

#[derive(Serialize)]
struct FindingRow<'a> {
    name: &'a str,
    /// The examined device; null for a finding about the machine.
    device: Option<&'a str>,
    state: &'a str,
    found: &'a str,
    /// The remedy for the finding; null if there is nothing to do.
    remedy: Option<&'a str>,
}

impl<'a> FindingRow<'a> {
    fn of(finding: &'a Finding) -> Self {
        let Finding { name, device, state, found, remedy } = finding;
        Self {
            name,
            device: device.as_deref(),
            state: state.name(),
            found,
            remedy: Some(&**remedy).filter(|it| !it.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(name: &'static str, state: State, remedy: &str) -> Finding {
        Finding { name, device: None, state, found: "it".to_owned(), remedy: remedy.to_owned() }
    }

    #[test]
    fn what_breaks_counts_more_than_what_was_not_looked_at() {
        let fine = finding("kernel", State::Fine, "");
        let limited = finding("LRO", State::Limited, "do");
        let not_run = finding("TUN", State::NotRun, "run as root");
        let broken = finding("rules", State::Breaks, "write");
        let said = |all: &[&Finding]| {
            let findings = Findings(all.iter().map(|&one| one.clone()).collect());
            findings.verdict("rxo run").err().map(|error| error.to_string())
        };
        assert_eq!(said(&[&fine, &limited]), None);
        assert!(said(&[&fine, &not_run]).unwrap().contains("want of privilege: TUN;"));
        assert!(said(&[&not_run, &broken]).unwrap().contains("break something: rules;"));
    }

    #[test]
    fn rows_are_aligned_and_objects_are_whole() {
        let mut rows = [finding("kernel", State::Fine, ""), finding("LRO", State::Limited, "do")];
        rows[1].device = Some("packet:eth1".to_owned());
        let findings = Findings(rows.to_vec());
        assert_eq!(
            findings.text(),
            "check   of           state    found\nkernel  machine      fine     it\nLRO     packet:eth1  limited  it; do"
        );
        assert_eq!(
            serde_json::to_string(&findings).unwrap(),
            concat!(
                r#"[{"name":"kernel","device":null,"state":"fine","found":"it","remedy":null},"#,
                r#"{"name":"LRO","device":"packet:eth1","state":"limited","found":"it","remedy":"do"}]"#
            )
        );
    }
}
