//! `rxo verify`: what can be typed.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct VerifyFlags {
    /// A capture: pcap or pcapng, plain, gzip or zstd; - is standard input.
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,

    /// The capture to compare it with.
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,

    /// How many megabytes of packets may wait for their counterpart; the one that waits longest
    /// beyond that counts as missing.
    #[arg(long, value_name = "MB", default_value_t = 64)]
    pub(crate) window: usize,

    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}
