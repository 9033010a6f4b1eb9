//! The flags of `rxo calibrate`, as clap parses them.

use std::path::PathBuf;

use clap::Args;

/// The flags of `rxo calibrate`.
#[derive(Args, Debug)]
pub struct CalibrateFlags {
    /// Approximate duration in seconds, 6 to 600; a longer one allows more rounds. A busy machine takes longer.
    #[arg(long, value_name = "N", default_value = "30", allow_hyphen_values = true)]
    pub(crate) seconds: String,

    /// Save the costs as JSON, for rxo analyze --costs FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}
