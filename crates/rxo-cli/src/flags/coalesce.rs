//! Flags of `rxo coalesce`.

use std::path::PathBuf;

use clap::Args;

use super::ReplayFlags;

#[derive(Args, Debug)]
pub(crate) struct CoalesceFlags {
    /// Capture to read: pcap or pcapng, plain or compressed (gzip, zstd, xz, lz4, bzip2); - is standard input.
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// Pcapng file to write, or a pipe or /dev/null; - is standard output, and the summary then goes to
    /// standard error.
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) replay: ReplayFlags,

    /// Print the summary as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
