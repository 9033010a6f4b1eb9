//! The flag of every command that can be asked while it runs.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ControlFlags {
    /// Unix socket on which this process answers `rxo ctl SOCKET`: shows counters, connections and policies, and
    /// changes what may change while it runs. Its file has mode 0600 and is removed at the end.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) control: Option<PathBuf>,
}
