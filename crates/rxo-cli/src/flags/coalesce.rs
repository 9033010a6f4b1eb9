//! `rxo coalesce`: what can be typed.

use clap::Args;

use super::ReplayFlags;

#[derive(Args, Debug)]
pub(crate) struct CoalesceFlags {
    /// The capture: pcap or pcapng, plain, gzip or zstd; - is standard input.
    #[arg(value_name = "IN")]
    pub(crate) input: String,

    /// The pcapng file to write.
    #[arg(value_name = "OUT")]
    pub(crate) output: String,

    #[command(flatten)]
    pub(crate) replay: ReplayFlags,

    /// Print JSON instead of a sentence.
    #[arg(long)]
    pub(crate) json: bool,
}
