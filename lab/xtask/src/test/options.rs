//! The options of `cargo xtask test`, checked against the steps that exist.

use anyhow::{Result, bail};

use super::steps::{STEPS, Step, When};
use crate::UsageError;

/// The selected steps, and the way to run them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) list: bool,
    /// Set by `--ci`: only the steps that CI adds to those of every change.
    pub(super) ci: bool,
    /// Set by `--all`: every step, including those too long for CI.
    pub(super) all: bool,
    /// Set by `--guests`: also all tests that boot guests in emulation, not only the one of CI.
    pub(super) guests: bool,
    /// The steps that `--only` names; `None` without it.
    only: Option<Vec<String>>,
}

impl Options {
    /// Reads the arguments.
    ///
    /// # Errors
    /// An option or step does not exist; the error lists those that do.
    pub(super) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut arguments = arguments.iter().map(String::as_str);
        while let Some(argument) = arguments.next() {
            match argument {
                "--list" => options.list = true,
                "--ci" => options.ci = true,
                "--all" => options.all = true,
                "--guests" => options.guests = true,
                "--only" => options.add(arguments.next().unwrap_or_default())?,
                _ => match argument.strip_prefix("--only=") {
                    Some(names) => options.add(names)?,
                    None => bail!(UsageError(format!(
                        "unknown option {argument:?}; `test` takes --ci, --all, --guests, \
                         --only STEP,… and --list"
                    ))),
                },
            }
        }
        Ok(options)
    }

    /// Adds the steps of a comma-separated list.
    fn add(&mut self, names: &str) -> Result<()> {
        let only = self.only.get_or_insert_default();
        for name in names.split(',') {
            only.push(known(name)?);
        }
        Ok(())
    }

    /// Returns `true` if the options select `step`.
    pub(super) fn wants(&self, step: &Step) -> bool {
        match &self.only {
            Some(only) => only.iter().any(|name| name == step.name),
            None if self.all => true,
            None if self.ci => step.when == When::Ci,
            None => step.when == When::Always,
        }
    }
}

fn known(name: &str) -> Result<String> {
    if STEPS.iter().any(|step| step.name == name) {
        return Ok(name.to_owned());
    }
    let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    bail!(UsageError(format!("no step {name:?} for --only; there are: {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&arguments)
    }

    fn chosen(line: &str) -> Vec<&'static str> {
        let options = parse(line).unwrap();
        STEPS.iter().filter(|step| options.wants(step)).map(|step| step.name).collect()
    }

    #[test]
    fn every_step_is_of_one_command_and_all_has_every_one() {
        assert_eq!(chosen("--all").len(), STEPS.len());
        let long = STEPS.iter().filter(|step| step.when == When::All).count();
        let (short, ci) = (chosen(""), chosen("--ci"));
        assert!(long > 0 && short.contains(&"live") && ci.contains(&"docs"));
        assert!(short.iter().all(|step| !ci.contains(step)));
        assert_eq!(short.len() + ci.len() + long, STEPS.len());
    }

    #[test]
    fn a_long_step_runs_when_it_is_named() {
        assert_eq!(chosen("--only test-release"), ["test-release"]);
    }

    #[test]
    fn only_chooses_and_keeps_the_order() {
        assert_eq!(chosen("--only live,fmt"), ["fmt", "live"]);
        assert_eq!(chosen("--only=fmt --only layers"), ["fmt", "layers"]);
    }

    #[test]
    fn what_does_not_exist_is_named() {
        let error = parse("--only fmt,nothing").unwrap_err();
        assert!(error.is::<UsageError>());
        assert!(error.to_string().contains("no step \"nothing\""), "{error}");
        assert!(parse("--only").is_err());
        assert!(parse("--fast").unwrap_err().to_string().contains("\"--fast\""));
    }
}
