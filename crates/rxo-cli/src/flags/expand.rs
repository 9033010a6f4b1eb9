//! `rxo expand`: what can be typed.

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct ExpandFlags {
    /// What `rxo coalesce` wrote, also in gzip or zstd; - is standard input.
    #[arg(value_name = "IN")]
    pub(crate) input: String,

    /// The file to write: pcap if its name ends in .pcap or .cap, pcapng if in .pcapng, otherwise
    /// in the format that the original had.
    #[arg(value_name = "OUT")]
    pub(crate) output: String,

    /// Print JSON instead of a sentence.
    #[arg(long)]
    pub(crate) json: bool,
}
