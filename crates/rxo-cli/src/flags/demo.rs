//! `rxo demo`: what can be typed.

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct DemoFlags {
    /// TCP connections that transfer at the same time, 1 to 400.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) connections: usize,

    /// How often every path is measured; the table shows medians.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) rounds: usize,

    /// How long one bulk measurement takes, such as 1.2s.
    #[arg(long, value_name = "TIME", default_value = "1.2s")]
    pub(crate) seconds: String,

    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}
