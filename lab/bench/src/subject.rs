//! The `rxo` program under test.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

/// Option for the program under test.
#[derive(Args, Debug)]
pub(crate) struct Subject {
    /// The command under test. Without it, the `rxo` beside this program.
    #[arg(long, value_name = "FILE")]
    rxo: Option<PathBuf>,
}

impl Subject {
    /// Returns the path of the program under test.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        Ok(match &self.rxo {
            Some(rxo) => rxo.clone(),
            None => std::env::current_exe()?.with_file_name("rxo"),
        })
    }
}
