//! `rxo sink` and `rxo source`: what can be typed.

use clap::Args;

use super::EndpointFlags;

/// What both measure and show.
#[derive(Args, Clone, Debug)]
pub(crate) struct MeterFlags {
    /// How many connections at once, 1 to 1000. A sink ends when so many have come and gone.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) connections: usize,

    /// How often a line of figures is printed, such as 1s or 500ms; 0s prints only the totals.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: String,

    /// Say for each connection the CRC-32 of what went over it (that of gzip and zlib), to compare
    /// both ends.
    #[arg(long)]
    pub(crate) hash: bool,

    /// Print JSON: one value a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SinkFlags {
    #[command(flatten)]
    pub(crate) endpoint: EndpointFlags,

    #[command(flatten)]
    pub(crate) meter: MeterFlags,

    /// Send back what comes: the other side of rxo source --rr, and of any other that asks and waits.
    #[arg(long)]
    pub(crate) rr: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SourceFlags {
    #[command(flatten)]
    pub(crate) endpoint: EndpointFlags,

    #[command(flatten)]
    pub(crate) meter: MeterFlags,

    /// How long to send, such as 10s.
    #[arg(long, value_name = "TIME", default_value = "10s", conflicts_with = "bytes")]
    pub(crate) time: String,

    /// How much to send on each connection instead, such as 1000000, 64k, 10M or 1G.
    #[arg(long, value_name = "BYTES")]
    pub(crate) bytes: Option<String>,

    /// Send so many bytes at a time and wait until as many have come back: requests and responses,
    /// 1 to 65536 bytes.
    #[arg(long, value_name = "BYTES", num_args = 0..=1, default_missing_value = "1")]
    pub(crate) rr: Option<usize>,
}
