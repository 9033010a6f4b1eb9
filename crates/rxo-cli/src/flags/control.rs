//! Flags of every command that answers requests while it runs.

use std::path::PathBuf;

use clap::Args;

/// The flags of a command that answers requests and exports metrics.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ControlFlags {
    /// Unix socket on which this process answers `rxo ctl SOCKET`: shows counters, connections and policies,
    /// and changes settings while it runs. Its file has mode 0600 and is removed at the end.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) control: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) metrics: MetricsFlags,
}

/// The flag of a command that exports metrics.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct MetricsFlags {
    /// Export all counters to Prometheus: at http://ADDR:PORT/metrics, such as 127.0.0.1:9464, to everybody who reaches
    /// that address; or on a unix socket, whose file has mode 0600 and is removed at the end.
    #[arg(long, value_name = "ADDR:PORT|unix:PATH")]
    pub(crate) metrics: Option<String>,
}
