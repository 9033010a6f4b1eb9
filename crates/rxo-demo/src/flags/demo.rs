//! The flags of `rxo demo`, as clap parses them.

use clap::Args;

/// The flags of `rxo demo`.
#[derive(Args, Debug)]
pub struct DemoFlags {
    /// Number of TCP connections that transfer at the same time, 1 to 400.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) connections: usize,

    /// Number of measurements of every path; the table shows medians.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) rounds: usize,

    /// Time of one bulk transfer, such as 500ms.
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    pub(crate) seconds: String,

    /// Measure a bare loop as well, which copies from the ring to the TAP in place of rxo and does nothing else.
    #[arg(long, conflicts_with = "reverse")]
    pub(crate) floor: bool,

    /// Measure the sender's side: a bulk sender behind rxo whose peer acknowledges often.
    #[arg(long)]
    pub(crate) reverse: bool,

    /// With --reverse: segments for which the peer sends one ACK: each (1), linux (Linux's default) or N, 2
    /// to 40.
    #[arg(long, value_name = "RATE", default_value = "each", requires = "reverse")]
    pub(crate) peer_acks: String,

    /// With --reverse: time for which rxo holds ACKs: end-of-poll, polls:N, packets:N or a time such as
    /// 100us.
    #[arg(long, value_name = "HOLD", default_value = "end-of-poll", requires = "reverse")]
    pub(crate) hold: String,

    /// Print the findings as JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}
