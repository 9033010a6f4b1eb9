//! Flags of `rxo cast`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{HostFlags, MetricsFlags, UserFlags};

#[derive(Args, Clone, Debug)]
pub(crate) struct CastFlags {
    #[command(subcommand)]
    pub(crate) command: CastCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CastCommand {
    /// Send a file to many hosts at once; every byte leaves once.
    Send(Box<CastSendFlags>),
    /// Receive the file that a host sends to many with rxo cast send.
    Receive(Box<CastReceiveFlags>),
    /// Let a host whose TCP does not support groups receive, such as Linux on a TAP: forward its frames, and
    /// rewrite segments to the group into segments of its own connection to the sender.
    Join(CastJoinFlags),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CastSendFlags {
    /// File to send to the receivers.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) host: HostFlags,

    /// The group to send to, such as 232.1.1.1:7000 or `[ff3e::8000:1]:7000`.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) group: String,

    /// TCP port on which receivers join, at the first --ip address.
    #[arg(long, value_name = "PORT", default_value_t = 7_000)]
    pub(crate) port: u16,

    /// Number of receivers for which the sender waits, 1 to 65536. The exit code is 1 if fewer come. Twice as many may be
    /// there at a time, because a restarted receiver joins again.
    #[arg(long, value_name = "N")]
    pub(crate) receivers: usize,

    /// Time to wait for the receivers; then the cast begins with those that have come.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) wait: String,

    /// Treatment of a receiver that holds the others up: wait; or eject:TIME, which ejects it if it takes less than a
    /// segment in this time while data waits for it; or eject:TIME,least:RATE, which also ejects the slowest receiver
    /// if all get less than RATE bytes a second over this time because of it.
    #[arg(long, value_name = "HOW", default_value = "eject:10s")]
    pub(crate) slow: String,

    /// Treatment of a receiver that comes after the first byte: refuse; catch-up, which sends it what it missed by
    /// unicast; or, with --raw, from-now. With catch-up:TIME or from-now:TIME all late receivers together make the cast
    /// at most TIME longer; without TIME, a minute and a second for each 10 MB of the file. After that time the
    /// late receivers are reset, and further ones are refused.
    #[arg(long, value_name = "HOW", default_value = "refuse")]
    pub(crate) late: String,

    /// Repair of lost data: parity, by packets to the group that each mend a different loss at each receiver; each, by
    /// unicast to each receiver; group:N, to the group if at least N receivers miss the same data within a round trip;
    /// or auto, which is parity for 32 or more receivers, and group:2 for fewer, with --raw, or with --pace paper.
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) repair: String,

    /// Congestion control of the group: leader, one window for all, led by the receiver with the worst path; or paper,
    /// the smallest window of all receivers, as in the paper by Chan and Cheriton.
    #[arg(long, value_name = "HOW", default_value = "leader")]
    pub(crate) pace: String,

    /// Send the file alone, without its name, length and hashes: for receivers that are not rxo cast receive.
    #[arg(long)]
    pub(crate) raw: bool,

    #[command(flatten)]
    pub(crate) metrics: MetricsFlags,

    /// Print JSON, one object a line: the result of each receiver when its connection has ended, then the totals.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CastReceiveFlags {
    /// The sender and the port on which it waits for receivers, such as 10.0.0.1:7000.
    #[arg(value_name = "SOURCE:PORT")]
    pub(crate) source: String,

    /// The group to which the sender sends, such as 232.1.1.1:7000 or `[ff3e::8000:1]:7000`.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) group: String,

    /// File to write; - is standard output. Default: under its own name, in this directory.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Time to wait for a sender that has not started yet.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) wait: String,

    /// The hash that the sender prints as root. Only the file with this root is accepted; without it, the one that the
    /// sender names first.
    #[arg(long, value_name = "HASH")]
    pub(crate) root: Option<String>,

    #[command(flatten)]
    pub(crate) metrics: MetricsFlags,

    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) host: HostFlags,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CastJoinFlags {
    /// The sender and the port to which the receiver connects, such as 10.0.0.1:7000.
    #[arg(value_name = "SOURCE:PORT")]
    pub(crate) source: String,

    /// The group to which the sender sends, such as 232.1.1.1:7000 or `[ff3e::8000:1]:7000`.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) group: String,

    /// Device on the network side: packet:IFNAME for an interface without an address of the system's own.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) nic: String,

    /// Device on the receiver's side: tap:NAME for a new interface of this system, or packet:IFNAME for one that leads
    /// to a namespace or a machine.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) host: String,

    #[command(flatten)]
    pub(crate) user: UserFlags,

    #[command(flatten)]
    pub(crate) metrics: MetricsFlags,
}
