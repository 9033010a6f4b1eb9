//! `rxo repro menon`: Menon and Zwaenepoel, "Optimizing TCP Receive Performance" (2008). A module
//! for each part of it: [`receive`] for a host that receives (section 5), [`acks`] for those who count
//! acknowledgements (sections 3.4 and 4).

mod acks;
mod receive;
mod verdict;

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::ValueEnum;
use rxo_console::fault::usage;

use crate::flags::{MenonExperiment, MenonFlags, MenonPart};

/// Repeats a part of the paper.
///
/// # Errors
/// When an experiment is of another part, and as the part's module says.
pub(super) fn command(flags: &MenonFlags, stop: &AtomicBool) -> Result<()> {
    if let Some(other) = flags.only.iter().find(|one| one.part() != flags.part) {
        return Err(usage(format!(
            "--only {}: that is of --part {}",
            name(*other),
            other
                .part()
                .to_possible_value()
                .map_or_else(String::new, |part| part.get_name().into())
        )));
    }
    match flags.part {
        MenonPart::Receive => receive::command(flags, stop),
        MenonPart::Acks => acks::command(flags, stop),
    }
}

fn name(experiment: MenonExperiment) -> String {
    experiment.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
