//! Flags for the extent of an experiment, and for its output.

use clap::Args;

/// For every experiment that is repeated.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ExtentFlags {
    /// A small version of everything, in about a minute: to see that it works.
    #[arg(long)]
    pub(crate) quick: bool,

    /// How often what takes real time is measured; the tables show medians.
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<usize>,

    /// Print JSON instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// For experiments whose measurements take as long as the user wants.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct MeasureFlags {
    #[command(flatten)]
    pub(crate) extent: ExtentFlags,

    /// The time that one measurement takes, such as 1s.
    #[arg(long, value_name = "TIME")]
    pub(crate) seconds: Option<String>,
}
