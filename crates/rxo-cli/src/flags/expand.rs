//! `rxo expand`: what can be typed.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct ExpandFlags {
    /// What `rxo coalesce` wrote, also in gzip or zstd; - is standard input.
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// The file to write: pcap if its name ends in .pcap or .cap, pcapng if in .pcapng, otherwise
    /// in the format that the original had; - is standard output, and then what was done is said on
    /// standard error.
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,

    /// Print JSON instead of a sentence.
    #[arg(long)]
    pub(crate) json: bool,
}
