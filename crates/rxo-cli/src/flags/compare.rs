//! Flags of `rxo compare`.

use std::path::PathBuf;

use clap::Args;

use crate::defaults;

#[derive(Args, Debug)]
pub(crate) struct CompareFlags {
    /// Captures to read, in this order: pcap or pcapng, plain or compressed (gzip, zstd, xz, lz4, bzip2); - is standard input, a directory
    /// stands for its files.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Policies to compare, separated by commas: names from `rxo policies`, juggler, all for each of these, and TOML
    /// files that end in .toml.
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub(crate) policies: String,

    /// End of a poll: time:T after its first packet (1ns to 1s), as with rx-usecs; host:T for a host that is busy for T
    /// (1ns to 1s) with each packet and then polls what has arrived; packets:N (1 to 32768).
    #[arg(long, value_name = "RULE", default_value = defaults::STUDIED_POLL)]
    pub(crate) poll: String,

    /// TCP and UDP checksums: auto (verify those that can be: not those that the sender left to its network card, and
    /// not those of packets that the capture cut); verify (accept only right ones); partial (auto, but refuse cut
    /// packets); trust (check none).
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) checksum: String,

    /// Cost of receiving, from which the cores are predicted: a file from rxo calibrate --save, or
    /// packet=800ns,byte=0.3ns,coalesce=30ns,device=100ns, which is the default.
    #[arg(long, value_name = "COSTS")]
    pub(crate) costs: Option<String>,

    /// Rate in Gbit/s for which the cores are predicted.
    #[arg(long, value_name = "GBIT", default_value_t = 10.0)]
    pub(crate) rate: f64,

    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}
