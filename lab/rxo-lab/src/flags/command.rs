//! The flags of `rxo-lab`, as clap parses them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::smo::SmoFlags;
use super::{
    AttackFlags, ExtentFlags, JugglerFlags, MeasureFlags, ScaleFlags, SoakFlags, TryFlags,
};
use crate::menon::card::linux::domain::DomainFlags;
use crate::menon::card::receiver::ReceiverFlags;
use crate::paro::server::ServerFlags;

/// The laboratory of rxo: repeats the papers' experiments, and measures rxo beside others.
#[derive(Debug, Parser)]
#[command(name = "rxo-lab", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Receive Side Coalescing (Makineni et al. 2006): how much of real senders' traffic could be
    /// coalesced (figures 4 to 8), what that saves (10 to 12), and at other rates.
    Rsc(RscFlags),
    /// Optimizing TCP Receive Performance (Menon and Zwaenepoel 2008): what Receive Aggregation and
    /// ACK Offload gain a receiving host (section 5), on rxo's own stack; menon acks: what coalescing
    /// does to senders that count acknowledgements (sections 3.4 and 4).
    Menon(MenonFlags),
    /// ACK aggregation (Gallatin 2007): what pure ACKs cost a bulk sender, one by one and aggregated,
    /// with receivers that acknowledge rarely and often.
    Gallatin(GallatinFlags),
    /// Pure ACK Receive Optimization (Chan and Cheriton 2013): what the fast path for pure ACKs saves a file server
    /// (table 1, figures 1, 3 and 4), in instructions and in processor time. Needs valgrind.
    Paro(ParoFlags),
    /// Optimizations of Large Receive Offload in Xen (Oi and Nakajima 2009): what aggregation in the
    /// driver domain saves it and its guest (tables I, IV to VII), and Delayed Aggregation. Needs
    /// valgrind, QEMU, busybox and a C compiler.
    Xen(XenFlags),
    /// Reliable multicast with a fast path for its ACKs (Chan and Cheriton 2013, section 4): what an ACK costs the
    /// sender, and times for 88 to 168 receivers. Needs valgrind.
    Smo(SmoFlags),
    /// Juggler (Geng et al. 2016): how far it batches while packets are reordered, by its timeout, on virtual time.
    Juggler(JugglerFlags),
    /// Does rxo guest work on this machine? Boots small Linux guests in a private network, transfers a file into
    /// each and back, and compares hashes. Needs QEMU and busybox, which it installs as root, and Debian's kernel for
    /// clouds, which it downloads once.
    Guests(TryFlags),
    /// What the neighbours of a hostile guest have of rxo guest, without an attack and under each. In a private network,
    /// without virtual machines.
    Attacks(AttackFlags),
    /// What 8 to 128 cores and 25 to 400 Gbit/s would take, from costs that are measured here, and where memory ends it.
    Scale(ScaleFlags),
    /// rxo under everything at once for as long as you like: are all bytes right, do all counters add up, does anything
    /// grow? In a private network.
    Soak(SoakFlags),
    /// Measure rxo beside its rivals and its own past.
    Bench {
        /// Which benchmark.
        #[command(subcommand)]
        benchmark: rxo_bench::Command,
    },
    /// The rxo command, for the experiments that run it as a process.
    #[command(hide = true, disable_help_flag = true)]
    Rxo {
        /// Its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct GallatinFlags {
    #[command(flatten)]
    pub(crate) measure: MeasureFlags,

    /// TCP connections that transfer at the same time, 1 to 400; the paper has one.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) connections: usize,

    /// Folder for the figures, which are written as SVG.
    #[arg(long, value_name = "DIR", default_value = "repro/gallatin")]
    pub(crate) out: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct RscFlags {
    #[command(flatten)]
    pub(crate) measure: MeasureFlags,

    /// Only these parts.
    #[arg(long, value_name = "PART", value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<RscPart>,

    /// Keep the captures of the senders in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Study the captures in this directory instead of making some: kept ones, or your own.
    #[arg(long, value_name = "DIR", conflicts_with = "keep")]
    pub(crate) captures: Option<PathBuf>,

    /// Folder for the figures, which are written as SVG.
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
}

/// A part of the RSC paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RscPart {
    /// Figures 4 to 8: packets eliminated, from captures.
    Captures,
    /// Figures 10 to 12: processor time, measured, and the projection from it.
    Cpu,
}

/// The receiving host, unless another part of the paper is named.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct MenonFlags {
    #[command(subcommand)]
    pub(crate) part: Option<MenonPart>,

    #[command(flatten)]
    pub(crate) receive: ReceiveFlags,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MenonPart {
    /// What coalescing does to those who count acknowledgements (sections 3.4 and 4).
    Acks(AcksFlags),
    /// A receiving host behind a card that costs it nothing, in instructions and processor time (section 5).
    /// Needs valgrind, and QEMU for the guest.
    Card(CardFlags),
    /// The receiving process of `card`.
    #[command(hide = true)]
    Receiver(ReceiverFlags),
    /// The driver domain of `card`.
    #[command(hide = true)]
    Domain(DomainFlags),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CardFlags {
    #[command(flatten)]
    pub(crate) extent: ExtentFlags,

    /// Only these experiments.
    #[arg(long, value_name = "EXPERIMENT", value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<CardExperiment>,

    /// Folder for the figures, which are written as SVG.
    #[arg(long, value_name = "DIR", default_value = "repro/menon")]
    pub(crate) out: PathBuf,
}

/// An experiment with a receiving host behind a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CardExperiment {
    /// One connection, read on the worker's thread (figures 7 and 8).
    Profile,
    /// One connection, read on a thread of its own (figures 7 and 9).
    Threads,
    /// Both, with more than the receiver takes: a generator sends (figure 7).
    Saturation,
    /// The Aggregation Limit, 1 to 35 (figure 11).
    Limit,
    /// 1 to 400 connections (figure 12).
    Connections,
    /// Requests and responses (table 1).
    Exchange,
    /// Linux's own stack in a guest, fed frames and aggregates (figure 10). Needs QEMU, busybox and a C compiler.
    Linux,
    /// What a packet costs by how much a processor prefetches (figure 1), a simulation.
    Prefetch,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ReceiveFlags {
    #[command(flatten)]
    pub(crate) measure: MeasureFlags,

    /// Only these experiments.
    #[arg(long, value_name = "EXPERIMENT", value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<ReceiveExperiment>,

    /// Folder for the figures, which are written as SVG.
    #[arg(long, value_name = "DIR", default_value = "repro/menon")]
    pub(crate) out: PathBuf,
}

/// An experiment with a receiving host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReceiveExperiment {
    /// One connection, five, and one of a guest (figures 3 and 7 to 10).
    Profile,
    /// The Aggregation Limit, 1 to 35 (figure 11).
    Limit,
    /// 1 to 400 connections (figure 12).
    Connections,
    /// Requests and responses (table 1).
    Exchange,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct AcksFlags {
    #[command(flatten)]
    pub(crate) measure: MeasureFlags,

    /// Only these experiments.
    #[arg(long, value_name = "EXPERIMENT", value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<AcksExperiment>,

    /// Folder for the figures, which are written as SVG.
    #[arg(long, value_name = "DIR", default_value = "repro/menon")]
    pub(crate) out: PathBuf,

    /// The rate of the link, 10 to 10000 Mbit/s; 200 unless --quick. For keep-every 1000 is better:
    /// more ACKs come in less time.
    #[arg(long, value_name = "MBIT")]
    pub(crate) rate: Option<u64>,
}

/// An experiment with those who count acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AcksExperiment {
    /// Receivers that coalesce data, and their ACKs split again.
    Split,
    /// Senders whose pure ACKs are aggregated: how many may be swallowed.
    KeepEvery,
}

#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct XenFlags {
    #[command(subcommand)]
    pub(crate) step: Option<XenStep>,

    /// Only these parts.
    #[arg(long, value_name = "PART", value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<XenPart>,

    /// A small version of everything: to see that it works.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Print JSON instead of tables.
    #[arg(long)]
    pub(crate) json: bool,

    /// Folder for the figures, which are written as SVG.
    #[arg(long, value_name = "DIR", default_value = "repro/xen")]
    pub(crate) out: PathBuf,
}

/// A part of the Xen paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum XenPart {
    /// Tables I and IV: the rate that follows from instructions a byte.
    Throughput,
    /// Table V: instructions a byte of the driver domain, counted by valgrind, and of a guest, by QEMU.
    Cost,
    /// Table VI: packets an aggregate, and how long segments are held.
    Rate,
    /// Table VII: requests and responses, on virtual time.
    Latency,
    /// Live guests: requests and responses, and several guests at once.
    Guests,
}

/// The process that `rxo-lab xen` runs under valgrind.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum XenStep {
    /// Pass frames on and print what was sent.
    #[command(hide = true)]
    Driver(XenDriverFlags),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct XenDriverFlags {
    #[arg(long)]
    pub(crate) system: String,
    #[arg(long)]
    pub(crate) frames_a_poll: f64,
    #[arg(long)]
    pub(crate) frames: usize,
}

#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ParoFlags {
    #[command(subcommand)]
    pub(crate) step: Option<ParoStep>,

    #[command(flatten)]
    pub(crate) extent: ExtentFlags,

    /// Only these parts.
    #[arg(long, value_name = "PART", value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<ParoPart>,

    /// Folder for the figures, which are written as SVG.
    #[arg(long, value_name = "DIR", default_value = "repro/paro")]
    pub(crate) out: PathBuf,
}

/// A part of the PARO paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ParoPart {
    /// Table 1, figures 1 and 4: instructions of requests, counted by valgrind.
    Requests,
    /// Figure 3: cycles, as valgrind estimates them with simulated caches.
    Cycles,
    /// A live server with Linux clients: processor time.
    Live,
}

/// The process that `rxo-lab paro` runs under valgrind.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ParoStep {
    /// Serve modelled clients and print what they took.
    #[command(hide = true)]
    Server(ServerFlags),
}
