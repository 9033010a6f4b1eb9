//! Flags of `rxo serve`.

use std::path::PathBuf;

use clap::Args;

use super::{ControlFlags, HostFlags, LogFlags, WorkersFlags};

#[derive(Args, Clone, Debug)]
pub(crate) struct ServeFlags {
    /// Directory to serve. A symbolic link is followed if it is relative and stays inside.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    #[command(flatten)]
    pub(crate) host: HostFlags,

    /// Port on which the server listens.
    #[arg(long, value_name = "PORT", default_value_t = 80)]
    pub(crate) port: u16,

    /// Maximum number of clients at a time, 1 to 500000. Further clients wait.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) clients: usize,

    /// Maximum number of clients from one IPv4 address or one IPv6 /64; default: a quarter of --clients. Further
    /// clients get status 503.
    #[arg(long, value_name = "N")]
    pub(crate) per_peer: Option<usize>,

    /// Minimum rate at which a client must take an answer, in bytes a second, such as 4k; measured over the whole
    /// answer, after its first 30 s. A slower client is disconnected. 0: no minimum, but every 64 KiB must be taken
    /// within 30 s.
    #[arg(long, value_name = "BYTES", default_value = "4k")]
    pub(crate) least_rate: String,

    /// Time for which an idle connection is kept, 1s to 1000s.
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub(crate) idle: String,

    #[command(flatten)]
    pub(crate) workers: WorkersFlags,

    #[command(flatten)]
    pub(crate) control: ControlFlags,

    #[command(flatten)]
    pub(crate) log: LogFlags,

    /// Print JSON, one value a line: first the addresses, then one object for each request.
    #[arg(long)]
    pub(crate) json: bool,
}
