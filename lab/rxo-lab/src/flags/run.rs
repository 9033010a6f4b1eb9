//! The flags that every experiment shares: its extent, its parts, and the form of its results.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rxo_console::fault::usage;

/// The extent and the output of a run.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RunFlags {
    /// Only these parts.
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub(crate) only: Vec<String>,

    /// A small version of everything, in about a minute: to see that it works.
    #[arg(long, conflicts_with = "full")]
    quick: bool,

    /// The extent of the papers. This is the default.
    #[arg(long)]
    full: bool,

    /// Only what is counted or on virtual time, as small as with --quick: the same on a busy machine.
    #[arg(long, conflicts_with = "full")]
    pub(crate) counted: bool,

    /// How often what takes real time is measured; the results are medians.
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<usize>,

    /// The time that one measurement takes, such as 1s, where that is a choice.
    #[arg(long, value_name = "TIME")]
    pub(crate) seconds: Option<String>,

    /// Print the results as JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,

    /// Write results.json into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// The flags of `rxo-lab check`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CheckFlags {
    /// The results to check.
    #[arg(value_name = "RESULTS")]
    pub(crate) results: PathBuf,

    /// The expected results.
    #[arg(value_name = "EXPECTED")]
    pub(crate) expected: PathBuf,

    /// Print the differences as JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Replace EXPECTED by what is compared of RESULTS.
    #[arg(long, conflicts_with = "json")]
    pub(crate) renew: bool,
}

/// A part of an experiment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// `true` if the part is counted or on virtual time, so that every machine has the same values.
    pub(crate) is_counted: bool,
}

impl Part {
    /// Makes a part that takes real time.
    pub(crate) const fn timed(name: &'static str) -> Self {
        Self { name, is_counted: false }
    }

    /// Makes a part that is counted or on virtual time.
    pub(crate) const fn counted(name: &'static str) -> Self {
        Self { name, is_counted: true }
    }
}

/// The chosen parts of an experiment.
#[derive(Clone, Debug)]
pub(crate) struct Chosen<'f> {
    flags: &'f RunFlags,
    parts: &'static [Part],
}

impl RunFlags {
    /// Returns `true` for a small run.
    pub(crate) const fn is_quick(&self) -> bool {
        self.quick || self.counted
    }

    /// Returns these flags for other parts.
    pub(crate) fn with_only(&self, only: Vec<String>) -> Self {
        Self { only, ..self.clone() }
    }

    /// Returns the extent's name.
    pub(crate) const fn extent(&self) -> &'static str {
        match (self.counted, self.quick) {
            (true, _) => "counted",
            (false, true) => "quick",
            (false, false) => "full",
        }
    }

    /// Returns the parts among `parts` that `--only` and `--counted` choose.
    ///
    /// # Errors
    /// If `--only` names a part that does not exist.
    pub(crate) fn chosen(&self, parts: &'static [Part]) -> Result<Chosen<'_>> {
        let is_unknown = |name: &&String| parts.iter().all(|part| part.name != **name);
        let Some(unknown) = self.only.iter().find(is_unknown) else {
            return Ok(Chosen { flags: self, parts });
        };
        let names: Vec<&str> = parts.iter().map(|part| part.name).collect();
        Err(usage(match names.is_empty() {
            true => format!("--only {unknown}: this experiment has no parts"),
            false => format!("--only {unknown}: choose {}", names.join(", ")),
        }))
    }
}

impl Chosen<'_> {
    /// Returns `true` if the part `name` was chosen.
    pub(crate) fn has(&self, name: &str) -> bool {
        let is_possible =
            |part: &&Part| part.name == name && (part.is_counted || !self.flags.counted);
        self.parts.iter().any(|part| is_possible(&part))
            && (self.flags.only.is_empty() || self.is_named(name))
    }

    /// Returns `true` if `--only` names the part `name`.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.flags.only.iter().any(|named| named == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;

    const PARTS: &[Part] = &[Part::counted("cost"), Part::timed("live")];

    #[test]
    fn parts_are_chosen_by_name_and_by_what_they_depend_on() {
        for (line, chosen) in [
            ("", [true, true]),
            ("--only live", [false, true]),
            ("--counted", [true, false]),
            ("--counted --only live", [false, false]),
        ] {
            let flags: RunFlags = typed(line).unwrap();
            let parts = flags.chosen(PARTS).unwrap();
            assert_eq!(["cost", "live"].map(|name| parts.has(name)), chosen, "{line}");
        }
    }

    #[test]
    fn an_unknown_part_is_named_with_the_known_ones() {
        let flags: RunFlags = typed("--only speed").unwrap();
        let error = |parts| flags.chosen(parts).unwrap_err().to_string();
        assert_eq!(error(PARTS), "--only speed: choose cost, live");
        assert_eq!(error(&[]), "--only speed: this experiment has no parts");
    }

    #[test]
    fn the_extent_is_full_unless_less_is_typed() {
        let extent = |line| typed::<RunFlags>(line).map(|flags| flags.extent());
        assert_eq!((extent("").unwrap(), extent("--full").unwrap()), ("full", "full"));
        assert_eq!(extent("--quick").unwrap(), "quick");
        assert_eq!(extent("--quick --counted").unwrap(), "counted");
        assert!(extent("--quick --full").is_err());
    }
}
