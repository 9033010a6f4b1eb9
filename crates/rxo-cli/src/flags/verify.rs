//! Flags of `rxo verify`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct VerifyFlags {
    /// First capture: pcap or pcapng, plain or compressed (gzip, zstd, xz, lz4, bzip2); - is standard input.
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,

    /// Capture to compare with the first.
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,

    /// Memory for packets that wait for their counterpart in the other capture, in megabytes. Beyond that, the packet
    /// that has waited longest counts as missing.
    #[arg(long, value_name = "MB", default_value_t = 64)]
    pub(crate) window: usize,

    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}
