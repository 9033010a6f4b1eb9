//! `rxo coalesce`: what can be typed.

use std::path::PathBuf;

use clap::Args;

use super::ReplayFlags;

#[derive(Args, Debug)]
pub(crate) struct CoalesceFlags {
    /// The capture: pcap or pcapng, plain, gzip or zstd; - is standard input.
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// The pcapng file to write, a pipe or /dev/null; - is standard output, and then what was done is
    /// said on standard error.
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) replay: ReplayFlags,

    /// Print JSON instead of a sentence.
    #[arg(long)]
    pub(crate) json: bool,
}
