//! Flags of the commands that may have several workers.

use clap::Args;

#[derive(Args, Clone, Debug)]
pub(crate) struct WorkersFlags {
    /// Number of workers, each with a thread and a queue of each device, 1 to 64; auto takes one for each receive queue
    /// of the nic, and at most one for each processor. A flow stays with one worker. Guests of rxo guest have threads of
    /// their own besides.
    #[arg(long, value_name = "N|auto", default_value = "1")]
    pub(crate) workers: String,

    /// Processors to which the workers are bound, one for each, such as 2-5 or 1,3. Without this flag the system moves
    /// them.
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
}
