//! `rxo repro menon`: Menon and Zwaenepoel, "Optimizing TCP Receive Performance" (2008). A module
//! for each part of it.

mod acks;

use anyhow::Result;

use crate::flags::{MenonFlags, MenonPart};

/// Repeats a part of the paper.
///
/// # Errors
/// As the part's module says.
pub(super) fn command(flags: &MenonFlags) -> Result<()> {
    match flags.part {
        MenonPart::Acks => acks::command(flags),
    }
}
