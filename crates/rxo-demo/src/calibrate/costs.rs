//! Parses `--costs`: costs given directly, or a file written by `rxo calibrate --save`.

use std::fs;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use rxo_console::fault::usage;
use rxo_testbed::MachineReading;
use rxo_trace::projection::Costs;
use serde::Deserialize;

use super::Plan;
use crate::experiment::{Experiment, Findings, privilege};
use crate::flags::CalibrateFlags;
use crate::load::Load;
use crate::turns::Turns;

/// The costs of receiving that the user gave with `--costs`.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// The costs of receiving, in nanoseconds per packet and per byte.
    pub costs: Costs,
    /// Text for reports that says where the costs come from.
    pub from: String,
}

/// The fields that are read from a saved calibration file.
#[derive(Deserialize)]
struct Saved {
    costs: Costs,
    machine: Option<Machine>,
}

#[derive(Deserialize)]
struct Machine {
    cpu: String,
}

/// Parses the value of `--costs`. Text with `=` is read as costs, unless a file has that name; other text is the path
/// of a saved calibration file.
///
/// # Errors
/// If the text is invalid, or the file cannot be read; the message describes valid values.
pub fn read(text: &str) -> Result<Given> {
    if text.contains('=') && fs::metadata(text).is_err() {
        let costs = text.parse().map_err(|error| usage(format!("--costs {text}: {error}")))?;
        return Ok(Given { costs, from: "given on the command line".to_owned() });
    }
    let content = fs::read_to_string(text).map_err(|error| {
        usage(format!(
            "--costs {text}: {error}; name a file of `rxo calibrate --save FILE`, or write \
             packet=800ns,byte=0.3ns,coalesce=30ns"
        ))
    })?;
    let saved: Saved = serde_json::from_str(&content).map_err(|error| {
        usage(format!("--costs {text}: not a file of `rxo calibrate --save FILE`: {error}"))
    })?;
    let costs = saved.costs.checked();
    let costs = costs.map_err(|error| usage(format!("--costs {text}: {error}")))?;
    let machine = saved.machine.map_or("an unknown machine".to_owned(), |machine| machine.cpu);
    Ok(Given { costs, from: format!("measured on {machine}, {text}") })
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
    Ok(Given { costs: found.costs, from: format!("measured on {cpu} before") })
}

/// The time for measuring the costs, in seconds: one round.
const SECONDS: &str = "7";

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn costs_are_given_directly_or_in_a_file() {
        let given = read("packet=800ns,byte=0.3ns,coalesce=30ns").unwrap();
        assert_eq!((given.costs.packet_ns, given.costs.device_ns), (800.0, 0.0));
        let path = std::env::temp_dir().join(format!("rxo-costs-{}.json", std::process::id()));
        let json = r#"{"costs":{"packet_ns":900,"byte_ns":0.2,"coalesce_ns":20,"device_ns":50},
                       "machine":{"cpu":"A Processor","cores":2}}"#;
        fs::write(&path, json).unwrap();
        let given = read(path.to_str().unwrap());
        fs::remove_file(&path).unwrap();
        let given = given.unwrap();
        assert_eq!(given.costs.device_ns, 50.0);
        assert!(given.from.starts_with("measured on A Processor, "), "{}", given.from);
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
