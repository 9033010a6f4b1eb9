//! Flags of `rxo analyze`.

use std::path::PathBuf;

use clap::Args;

use super::ReplayFlags;

#[derive(Args, Debug)]
pub(crate) struct AnalyzeFlags {
    /// Captures to analyze, in this order: pcap or pcapng, plain or compressed (gzip, zstd, xz, lz4, bzip2); - is
    /// standard input, a directory stands for its files. Or parts from --save, which are merged.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Watch what an interface receives in place of captures. Only reads: no setting changes. Needs CAP_NET_RAW. The
    /// decision compares with the host as it is, at the median, the 95th percentile and the peak of the rate.
    #[arg(long, value_name = "IF", conflicts_with_all = ["files", "part", "save"])]
    pub(crate) live: Option<String>,

    /// Watch the interface for this long: 1s to 60min. Ctrl-C ends earlier.
    #[arg(long, value_name = "TIME", default_value = "30s", conflicts_with = "files")]
    pub(crate) time: String,

    #[command(flatten)]
    pub(crate) replay: ReplayFlags,

    /// Also try other values of a policy setting, of hold or of poll: KEY=V,V or KEY=A..B, with A..B*2
    /// for factors and A..B+5 for steps. Two sweeps make a grid of at most 64 combinations.
    #[arg(long, value_name = "KEY=VALUES", num_args = 1..)]
    pub(crate) sweep: Vec<String>,

    /// Select packets by a filter of tcpdump, such as "dst 10.0.0.1 and port 445" (man pcap-filter). Needs libpcap.
    #[arg(long, value_name = "FILTER")]
    pub(crate) flow: Option<String>,

    /// Leave out duplicates: packets that the capture has twice within a millisecond, as from a mirror port or from the
    /// interface any on a bridge.
    #[arg(long)]
    pub(crate) dedup: bool,

    /// List the N flows with the most packets.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,

    /// Give no advice. Faster, because no other settings are tried.
    #[arg(long)]
    pub(crate) no_advice: bool,

    /// Cost of receiving, to decide whether coalescing is worth it: a file from rxo calibrate --save, or
    /// packet=800ns,byte=0.3ns,coalesce=30ns,device=100ns, which is the default for captures; with --live
    /// they are measured before, in about 10 s. If given, the report also projects the savings at 1 to 400 Gbit/s.
    #[arg(long, value_name = "COSTS")]
    pub(crate) costs: Option<String>,

    /// Write the report with its figures as one self-contained HTML file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write all flows and all tried settings as Parquet tables into a directory. Needs a build with
    /// --features parquet.
    #[arg(long, value_name = "DIR")]
    pub(crate) parquet: Option<PathBuf>,

    /// Analyze only part N of M. The parts are about equally long, and split at pauses. Each is independent: run
    /// 1/M to M/M with the same files and --save, then merge the saved files with rxo analyze FILE…
    #[arg(long, value_name = "N/M", requires = "save")]
    pub(crate) part: Option<String>,

    /// Write what was counted to a file, to merge it with other parts by rxo analyze FILE…
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    /// Print JSON instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}
