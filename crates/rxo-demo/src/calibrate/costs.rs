//! Parses `--costs`: costs given directly, or a file written by `rxo calibrate --save`.

use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use rxo_console::fault::usage;
use rxo_testbed::MachineReading;
pub use rxo_trace::projection::Given;

use super::Plan;
use crate::experiment::{Experiment, Findings, privilege};
use crate::flags::CalibrateFlags;
use crate::load::Load;
use crate::turns::Turns;

/// Parses the value of `--costs`. Text with `=` is read as costs, unless a file has that name; other text is the path
/// of a saved calibration file.
///
/// # Errors
/// If the text is invalid, or the file cannot be read; the message describes valid values.
pub fn read(text: &str) -> Result<Given> {
    Given::read(text, "given on the command line")
        .map_err(|error| usage(format!("--costs {error}")))
}

/// Measures the costs of receiving on this machine, in private networks; takes about ten seconds. Prints only its progress.
/// Once `stop` is set, ends early. A process without root enters a user namespace.
///
/// # Errors
/// If network namespaces cannot be created, or the machine is too busy to measure.
pub fn measured(stop: &AtomicBool) -> Result<Given> {
    let flags = CalibrateFlags { seconds: SECONDS.to_owned(), save: None, json: false };
    let plan = Plan::from_flags(&flags)?;
    let privilege = privilege()?;
    let turns = Turns::new(plan.steps()?, plan.output().json, stop);
    let before = MachineReading::now()?;
    let found = plan.measure(&turns)?;
    turns.finish();
    let load = Load::of(MachineReading::now()?.since(&before));
    if load.forbids(found.timed()) {
        bail!("{}", load.line(found.timed()));
    }
    let cpu = crate::machine::Machine::read(privilege).cpu;
    Ok(Given { costs: found.costs, host: found.host, from: format!("measured on {cpu} before") })
}

/// The time for measuring the costs, in seconds: one round.
const SECONDS: &str = "10";

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn error(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        assert!(error("packet=fast,byte=1ns").contains("`packet=fast` is not a cost"));
        assert!(error("no-such-file.json").contains("rxo calibrate --save FILE"));
        let path = std::env::temp_dir().join(format!("rxo-costs-bad-{}.json", std::process::id()));
        let rows = [
            ("{}", "missing field `costs`"),
            ("not json", "not a file of"),
            (r#"{"costs":{"packet_ns":-1,"byte_ns":0.2,"coalesce_ns":20}}"#, "choose 0ns to 1s"),
        ];
        for (content, part) in rows {
            fs::write(&path, content).unwrap();
            let said = error(path.to_str().unwrap());
            assert!(said.contains(part) && !said.contains('\n'), "{said}");
        }
        fs::remove_file(&path).unwrap();
    }
}
