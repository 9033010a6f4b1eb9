//! `rxo doctor`: checks whether this machine supports a run, and what the run would break. Changes nothing.

use anyhow::{Context, Result};
use rxo_driver::custody::{self, Claim};
use rxo_driver::{DeviceName, Origin};
use serde::Serialize;

use crate::exit::usage;
use crate::findings::Findings;
use crate::flags::DoctorFlags;
use crate::output;

/// Examines the machine and the nic (network interface), and prints the findings.
///
/// # Errors
/// If the nic does not exist, a finding would break a run, or a check could not be made.
pub(crate) fn command(flags: &DoctorFlags) -> Result<()> {
    let nic = flags.nic.as_deref().map(nic).transpose()?;
    let findings = nic.as_ref().map_or_else(|| Ok(Findings::of_machine(Some(LOOPBACK))), of_nic)?;
    let nic = nic.map(|nic| nic.to_string());
    if flags.json {
        output::json_document(&Report {
            kind: "doctor",
            nic: nic.as_deref(),
            findings: &findings,
        })?;
    } else {
        output::text(&findings.text())?;
    }
    let run = nic.map_or("rxo run".to_owned(), |nic| format!("rxo run --nic {nic} --take-over"));
    findings.verdict(&run)
}

/// Parses the name of the nic: `eth1`, or `packet:eth1` as for `rxo run`.
fn nic(text: &str) -> Result<DeviceName> {
    let full = if text.contains(':') { text.to_owned() } else { format!("packet:{text}") };
    let device: DeviceName = full.parse().context("--nic")?;
    if device.kind().interface != Some(Origin::Existing) {
        return Err(usage(format!(
            "--nic {text}: only an interface that exists is looked at; give --nic packet:IFNAME"
        )));
    }
    Ok(device)
}

fn of_nic(nic: &DeviceName) -> Result<Findings> {
    if let Some(left) = custody::left(nic) {
        // Without the nic's name nothing about it can be examined. The next run restores the name first.
        let mut findings = Findings::of_machine(Some(LOOPBACK));
        findings.push(left);
        return Ok(findings);
    }
    let host = "tap:rxo0".parse().context("--host")?;
    let (nic_flag, host_flag) = (("--nic", nic), ("--host", &host));
    let claim = Claim {
        nic: nic_flag,
        host: host_flag,
        takes_over: true,
        isolates: true,
        makes_host: true,
    };
    Findings::of_run(claim).with_context(|| format!("--nic {nic}"))
}

/// The findings of `rxo doctor` as JSON.
#[derive(Serialize)]
struct Report<'a> {
    kind: &'static str,
    /// The name of the examined nic; null without `--nic`.
    nic: Option<&'a str>,
    findings: &'a Findings,
}

/// Name of an interface that exists in every network namespace.
const LOOPBACK: &str = "lo";
