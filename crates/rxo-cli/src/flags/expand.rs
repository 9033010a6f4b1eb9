//! Flags of `rxo expand`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct ExpandFlags {
    /// File that `rxo coalesce` wrote, plain or compressed (gzip, zstd, xz, lz4, bzip2); - is standard input.
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// File to write: pcap if its name ends in .pcap or .cap, pcapng if it ends in .pcapng, otherwise the
    /// format of the original; - is standard output, and the summary then goes to standard error.
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,

    /// Print the summary as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
