//! The flags of `rxo-lab smo`, as clap parses them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::ExtentFlags;

#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SmoFlags {
    #[command(subcommand)]
    pub(crate) step: Option<SmoStep>,

    #[command(flatten)]
    pub(crate) extent: ExtentFlags,

    /// Only these parts.
    #[arg(long, value_name = "PART", value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<SmoPart>,

    /// Folder for the figures, which are written as SVG.
    #[arg(long, value_name = "DIR", default_value = "repro/smo")]
    pub(crate) out: PathBuf,
}

/// A part of the paper's section on multicast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SmoPart {
    /// Figures 6 and 8: instructions of an acknowledgement, for 8 to 1,000 receivers, counted by valgrind.
    Cost,
    /// Figure 5 on virtual time, from those instructions.
    Simulation,
    /// Figure 5 live: the sender alone on a core, link and receivers modelled on another.
    Knee,
    /// Casts to 168 receivers in eight namespaces: times, and every copy's hash under loss.
    Real,
}

/// The processes that `rxo-lab smo` starts.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SmoStep {
    /// Send to modelled receivers, for valgrind.
    #[command(hide = true)]
    Sender(SmoSenderFlags),
    /// Receivers on one interface.
    #[command(hide = true)]
    Rack(SmoRackFlags),
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct SmoSenderFlags {
    #[arg(long)]
    pub(crate) receivers: usize,
    #[arg(long)]
    pub(crate) rounds: usize,
    #[arg(long)]
    pub(crate) fast: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SmoRackFlags {
    /// The interface.
    #[arg(long)]
    pub(crate) interface: String,
    /// The number of the first receiver, which is its address.
    #[arg(long)]
    pub(crate) first: usize,
    #[arg(long)]
    pub(crate) receivers: usize,
    /// Frames lost before each receiver, of a million.
    #[arg(long)]
    pub(crate) loss_ppm: u32,
}
