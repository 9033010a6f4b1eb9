//! Flags of `rxo sink` and `rxo source`.

use clap::Args;

use super::{ControlFlags, EndpointFlags, LogFlags, WorkersFlags};

/// Flags for the measurement and output of both commands.
#[derive(Args, Clone, Debug)]
pub(crate) struct MeterFlags {
    /// Number of connections at a time, 1 to 10000. A sink ends after so many connections have ended.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) connections: usize,

    /// Time between two lines of figures, such as 1s or 500ms; 0s prints only the totals.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: String,

    /// Print the CRC-32 of each connection's bytes (that of gzip and zlib), to compare both ends.
    #[arg(long)]
    pub(crate) hash: bool,

    #[command(flatten)]
    pub(crate) workers: WorkersFlags,

    #[command(flatten)]
    pub(crate) control: ControlFlags,

    #[command(flatten)]
    pub(crate) log: LogFlags,

    /// Print JSON, one value a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SinkFlags {
    #[command(flatten)]
    pub(crate) endpoint: EndpointFlags,

    #[command(flatten)]
    pub(crate) meter: MeterFlags,

    /// Send back every byte: the other end of rxo source --rr, or of any other request and response test.
    #[arg(long)]
    pub(crate) rr: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SourceFlags {
    #[command(flatten)]
    pub(crate) endpoint: EndpointFlags,

    #[command(flatten)]
    pub(crate) meter: MeterFlags,

    /// Time to send for, such as 10s.
    #[arg(long, value_name = "TIME", default_value = "10s", conflicts_with = "bytes")]
    pub(crate) time: String,

    /// Bytes to send on each connection instead of --time, such as 1000000, 64k, 10M or 1G.
    #[arg(long, value_name = "BYTES")]
    pub(crate) bytes: Option<String>,

    /// Measure requests and responses: send so many bytes (1 to 65536), wait until as many have come
    /// back, and repeat.
    #[arg(long, value_name = "BYTES", num_args = 0..=1, default_missing_value = "1")]
    pub(crate) rr: Option<usize>,
}
