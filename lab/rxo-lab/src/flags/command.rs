//! The flags of `rxo-lab`, as clap parses them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::{AttackFlags, CheckFlags, RunFlags, SoakFlags, TryFlags};

/// The laboratory of rxo: repeats the papers' experiments, and measures rxo beside others.
#[derive(Debug, Parser)]
#[command(name = "rxo-lab", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Repeat every experiment and write one results.json, which lab/report turns into figures and pages.
    /// --only takes experiments (cast, cast-live, gallatin, juggler, menon, menon-acks, menon-card, paro, policies, rsc, smo, xen).
    All(RunFlags),
    /// Compare the claims and the series of two results.json: counts may differ by 2 %, virtual time not at
    /// all; what takes real time is reported and not judged.
    Check(CheckFlags),
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
    Paro(RunFlags),
    /// Optimizations of Large Receive Offload in Xen (Oi and Nakajima 2009): what aggregation in the
    /// driver domain saves it and its guest (tables I, IV to VII), and Delayed Aggregation. Needs
    /// valgrind, QEMU, busybox and a C compiler.
    Xen(RunFlags),
    /// The packets that each policy eliminates of each kind of traffic, counted by the engine alone.
    Policies(RunFlags),
    /// A cast beside as many downloads, for 5 to 168 receivers that lose up to 3 %: time and bytes, on virtual time;
    /// cast live: rxo cast beside udpcast, in namespaces.
    Cast(CastFlags),
    /// Juggler (Geng et al. 2016): how far it batches while packets are reordered, by its timeout, on virtual time.
    Juggler(RunFlags),
    /// Reliable multicast with a fast path for its ACKs (Chan and Cheriton 2013, section 4): what an ACK costs the
    /// sender, and times for 88 to 168 receivers. Needs valgrind.
    Smo(RunFlags),
    /// Does rxo guest work on this machine? Boots small Linux guests in a private network, transfers a file into
    /// each and back, and compares hashes. Needs QEMU and busybox, which it installs as root, and Debian's kernel for
    /// clouds, which it downloads once.
    Guests(TryFlags),
    /// What the neighbours of a hostile guest have of rxo guest, without an attack and under each. In a private network,
    /// without virtual machines.
    Attacks(AttackFlags),
    /// rxo under everything at once for as long as you like: are all bytes right, do all counters add up, does anything
    /// grow? In a private network.
    Soak(SoakFlags),
    /// Measure rxo beside its rivals and its own past.
    Bench {
        /// Which benchmark.
        #[command(subcommand)]
        benchmark: rxo_bench::Command,
    },
    /// A process of an experiment.
    #[command(hide = true)]
    Step {
        /// The step as JSON.
        step: String,
    },
    /// The rxo command, for the experiments that run it as a process.
    #[command(hide = true, disable_help_flag = true)]
    Rxo {
        /// Its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

#[derive(Args, Clone, Debug)]
pub(crate) struct GallatinFlags {
    #[command(flatten)]
    pub(crate) run: RunFlags,

    /// TCP connections that transfer at the same time, 1 to 400; the paper has one.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) connections: usize,
}

impl GallatinFlags {
    /// Returns the paper's flags for a run.
    pub(crate) fn with(run: &RunFlags) -> Self {
        Self { run: run.clone(), connections: 1 }
    }
}

#[derive(Args, Clone, Debug)]
pub(crate) struct RscFlags {
    #[command(flatten)]
    pub(crate) run: RunFlags,

    /// Keep the captures of the senders in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Study the captures in this directory instead of making some: kept ones, or your own.
    #[arg(long, value_name = "DIR", conflicts_with = "keep")]
    pub(crate) captures: Option<PathBuf>,

    /// Packets in each capture, 500 to 200000.
    #[arg(long, value_name = "N")]
    pub(crate) packets: Option<usize>,

    /// The rate of the senders' links and of the link that they share, 10 to 1000 Mbit/s.
    #[arg(long, value_name = "MBIT", default_value_t = RSC_MBIT)]
    pub(crate) rate: u64,

    /// Frames that a sender's link sends back to back, 1 to 64: the more, the less the senders mix.
    #[arg(long, value_name = "N", default_value_t = RSC_BURST)]
    pub(crate) burst: u32,
}

impl RscFlags {
    /// Returns the default flags for a run.
    pub(crate) fn with(run: &RunFlags) -> Self {
        let run = run.clone();
        Self { run, keep: None, captures: None, packets: None, rate: RSC_MBIT, burst: RSC_BURST }
    }
}

const RSC_MBIT: u64 = 200;
const RSC_BURST: u32 = 2;

/// Virtual time, unless processes are asked for.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct CastFlags {
    #[command(subcommand)]
    pub(crate) part: Option<CastPart>,

    #[command(flatten)]
    pub(crate) run: RunFlags,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CastPart {
    /// rxo cast beside udpcast (package udpcast), to 5 and 20 receivers that lose up to 3 %, in namespaces.
    Live(RunFlags),
}

/// The receiving host, unless another part of the paper is named.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct MenonFlags {
    #[command(subcommand)]
    pub(crate) part: Option<MenonPart>,

    #[command(flatten)]
    pub(crate) run: RunFlags,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MenonPart {
    /// What coalescing does to those who count acknowledgements (sections 3.4 and 4).
    Acks(AcksFlags),
    /// A receiving host behind a card that costs it nothing, in instructions and processor time (section 5).
    /// Needs valgrind, and QEMU for the guest.
    Card(RunFlags),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct AcksFlags {
    #[command(flatten)]
    pub(crate) run: RunFlags,

    /// The rate of the link, 10 to 10000 Mbit/s; 200 unless --quick. For keep-every 1000 is better:
    /// more ACKs come in less time.
    #[arg(long, value_name = "MBIT")]
    pub(crate) rate: Option<u64>,
}

impl AcksFlags {
    /// Returns the default flags for a run.
    pub(crate) fn with(run: &RunFlags) -> Self {
        Self { run: run.clone(), rate: None }
    }
}
