//! `rxo policies`: what can be typed.

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct PoliciesFlags {
    /// Print JSON instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}
