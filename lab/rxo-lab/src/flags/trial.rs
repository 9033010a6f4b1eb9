//! The flags of `rxo-lab guests` and `attacks`, as clap parses them.

use std::path::PathBuf;

use clap::Args;

/// The flags of `rxo-lab guests`.
#[derive(Args, Debug)]
pub(crate) struct TryFlags {
    /// Number of guests, 1 to 8. Each is a virtual machine with 128 MiB.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) guests: usize,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The flags of `rxo-lab attacks`.
#[derive(Args, Debug)]
pub(crate) struct AttackFlags {
    /// An older `rxo`, which is measured in turn with this one.
    #[arg(long, value_name = "FILE")]
    pub(crate) before: Option<PathBuf>,

    /// Seconds for which each attack is measured.
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    pub(crate) seconds: f64,

    /// Only these attacks: none, block, linger, chains, broadcasts, flood, features, memory, end.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) only: Vec<String>,

    /// Print JSON instead of the table of docs/guests-measured.md.
    #[arg(long)]
    pub(crate) json: bool,
}
