//! Which `rxo` is measured.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

/// The option.
#[derive(Args, Debug)]
pub(crate) struct Subject {
    /// The command under test. Without it, the `rxo` beside this program.
    #[arg(long, value_name = "FILE")]
    rxo: Option<PathBuf>,
}

impl Subject {
    /// The file of the command.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        Ok(match &self.rxo {
            Some(rxo) => rxo.clone(),
            None => std::env::current_exe()?.with_file_name("rxo"),
        })
    }
}
