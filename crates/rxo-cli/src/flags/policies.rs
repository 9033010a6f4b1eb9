//! Flags of `rxo policies`.

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct PoliciesFlags {
    /// Print JSON instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}
