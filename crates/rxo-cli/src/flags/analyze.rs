//! `rxo analyze`: what can be typed.

use std::path::PathBuf;

use clap::Args;

use super::ReplayFlags;

#[derive(Args, Debug)]
pub(crate) struct AnalyzeFlags {
    /// The captures, one after the other: pcap or pcapng, plain, gzip or zstd; - is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) replay: ReplayFlags,

    /// Try other values of a setting, of hold or of poll in the same pass: KEY=V,V or KEY=A..B, with
    /// A..B*2 for factors and A..B+5 for steps; two make a grid, of at most 64 combinations.
    #[arg(long, value_name = "KEY=VALUES", num_args = 1..)]
    pub(crate) sweep: Vec<String>,

    /// Look only at some packets: host A, net A/LEN or port N, each behind src, dst or not if you
    /// like, joined by and, or; such as "dst 10.0.0.1 and port 445".
    #[arg(long, value_name = "FILTER")]
    pub(crate) flow: Option<String>,

    /// How many flows are listed, those with most packets.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,

    /// Try no other settings for advice: faster.
    #[arg(long)]
    pub(crate) no_advice: bool,

    /// What receiving costs: a file of rxo calibrate --save, or
    /// packet=800ns,byte=0.3ns,coalesce=30ns,device=100ns. Decides whether coalescing is worth it, with
    /// these costs when none are given; given, they also say what it would save at 1 to 400 Gbit/s.
    #[arg(long, value_name = "COSTS")]
    pub(crate) costs: Option<String>,

    /// Write the report with its figures as one HTML file that needs nothing else.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write all flows and all settings tried as Parquet tables into a folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) parquet: Option<PathBuf>,

    /// Print JSON instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}
