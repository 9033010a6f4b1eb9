//! The flags of `rxo-lab soak`, as clap parses them.

use clap::Args;

/// The flags of `rxo-lab soak`.
#[derive(Args, Debug)]
pub(crate) struct SoakFlags {
    /// The time in minutes.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) minutes: u64,

    /// The time as such, like 30s, instead.
    #[arg(long, value_name = "TIME", conflicts_with = "minutes")]
    pub(crate) seconds: Option<String>,

    /// Print JSON at the end instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}
