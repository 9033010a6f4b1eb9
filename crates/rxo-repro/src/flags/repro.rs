//! `rxo repro`: what can be typed.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// The flags of `rxo repro`.
#[derive(Args, Debug)]
pub struct ReproFlags {
    #[command(subcommand)]
    pub(crate) paper: Paper,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Paper {
    /// Receive Side Coalescing (Makineni et al. 2006): how much of real senders' traffic could be
    /// coalesced (figures 4 to 8), what that saves (10 to 12), and at other rates.
    Rsc(RscFlags),
    /// Optimizing TCP Receive Performance (Menon and Zwaenepoel 2008), in parts.
    Menon(MenonFlags),
    /// ACK aggregation (Gallatin 2007): what pure ACKs cost a bulk sender, one by one and aggregated,
    /// with receivers that acknowledge rarely and often.
    Gallatin(GallatinFlags),
}

#[derive(Args, Debug)]
pub(crate) struct GallatinFlags {
    /// A small version of everything, in less than half a minute: to see that it works.
    #[arg(long)]
    pub(crate) quick: bool,

    /// TCP connections that transfer at the same time, 1 to 400; the paper has one.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) connections: usize,

    /// How often everything is measured; the tables show medians.
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<usize>,

    /// How long one measurement takes, such as 1s.
    #[arg(long, value_name = "TIME")]
    pub(crate) seconds: Option<String>,

    /// Where the figures are written as SVG.
    #[arg(long, value_name = "DIR", default_value = "repro/gallatin")]
    pub(crate) out: PathBuf,

    /// Print JSON instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct RscFlags {
    /// Only these parts.
    #[arg(long, value_name = "PART", value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<RscPart>,

    /// A small version of everything, in less than a minute: to see that it works.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Keep the captures of the senders in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Study the captures in this directory instead of making some: kept ones, or your own.
    #[arg(long, value_name = "DIR", conflicts_with = "keep")]
    pub(crate) captures: Option<PathBuf>,

    /// Where the figures are written as SVG.
    #[arg(long, value_name = "DIR", default_value = "repro/rsc")]
    pub(crate) out: PathBuf,

    /// Packets in each capture, 500 to 200000.
    #[arg(long, value_name = "N")]
    pub(crate) packets: Option<usize>,

    /// The rate of the senders' links and of the link that they share, 10 to 1000 Mbit/s.
    #[arg(long, value_name = "MBIT", default_value_t = 200)]
    pub(crate) rate: u64,

    /// Frames that a sender's link sends back to back, 1 to 64: the more, the less the senders mix.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) burst: u32,

    /// How often each cost is measured; the tables show medians.
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<usize>,

    /// How long one cost is measured, such as 1s.
    #[arg(long, value_name = "TIME")]
    pub(crate) seconds: Option<String>,

    /// Print JSON instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A part of the RSC paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RscPart {
    /// Figures 4 to 8: packets eliminated, from captures.
    Captures,
    /// Figures 10 to 12: processor time, measured, and the projection from it.
    Cpu,
}

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct MenonFlags {
    /// Which part of the paper.
    #[arg(long, value_name = "PART", value_enum, default_value_t = MenonPart::Receive)]
    pub(crate) part: MenonPart,

    /// Only these experiments of the part.
    #[arg(long, value_name = "EXPERIMENT", value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<MenonExperiment>,

    /// A small version, in less than a minute: to see that it works.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Where the figures are written as SVG.
    #[arg(long, value_name = "DIR", default_value = "repro/menon")]
    pub(crate) out: PathBuf,

    /// For the part acks: the rate of the link, 10 to 10000 Mbit/s; 200 unless --quick. For keep-every
    /// 1000 is better: more ACKs come in less time.
    #[arg(long, value_name = "MBIT")]
    pub(crate) rate: Option<u64>,

    /// How often each case is measured; the tables show medians.
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<usize>,

    /// How long one measurement takes, such as 4s.
    #[arg(long, value_name = "TIME")]
    pub(crate) seconds: Option<String>,

    /// Print JSON instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A part of Menon and Zwaenepoel 2008.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MenonPart {
    /// Section 5: what Receive Aggregation and ACK Offload gain a receiving host (figures 3, 7
    /// to 12, and table 1), on rxo's own stack.
    #[default]
    Receive,
    /// Sections 3.4 and 4: what coalescing does to those who count acknowledgements.
    Acks,
}

/// An experiment of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MenonExperiment {
    /// receive: one connection, five, and one of a guest (figures 3 and 7 to 10).
    Profile,
    /// receive: the Aggregation Limit, 1 to 35 (figure 11).
    Limit,
    /// receive: 1 to 400 connections (figure 12).
    Connections,
    /// receive: requests and responses (table 1).
    Exchange,
    /// acks: receivers that coalesce data, and their ACKs split again.
    Split,
    /// acks: senders whose pure ACKs are aggregated: how many may be swallowed.
    KeepEvery,
}

impl MenonExperiment {
    /// The part that it is of.
    pub(crate) const fn part(self) -> MenonPart {
        match self {
            Self::Profile | Self::Limit | Self::Connections | Self::Exchange => MenonPart::Receive,
            Self::Split | Self::KeepEvery => MenonPart::Acks,
        }
    }
}
