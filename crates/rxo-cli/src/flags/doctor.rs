//! Flags of `rxo doctor`.

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct DoctorFlags {
    /// Interface that a run would take over, such as eth1. Without it only the machine is checked.
    #[arg(long, value_name = "IF")]
    pub(crate) nic: Option<String>,

    /// Print the findings as JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}
