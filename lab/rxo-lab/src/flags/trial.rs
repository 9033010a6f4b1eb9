//! The flags of `rxo-lab guests`, as clap parses them.

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
