//! The flags of processes that experiments start, most of them under valgrind; not for users.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::smo::Way;

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

/// The process that `rxo-lab paro` runs under valgrind.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ParoStep {
    /// Serve modelled clients and print what they took.
    #[command(hide = true)]
    Server(ServerFlags),
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
    pub(crate) way: Way,
    #[arg(long)]
    pub(crate) receivers: usize,
    #[arg(long)]
    pub(crate) rounds: usize,
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

/// Flags of the receiver that `rxo-lab menon card` starts; not for users.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReceiverFlags {
    /// The card's socket.
    #[arg(long)]
    pub(crate) socket: PathBuf,
    /// The host's address, in a network of 24 bits.
    #[arg(long)]
    pub(crate) address: IpAddr,
    /// The Aggregation Limit; without it each frame is alone.
    #[arg(long)]
    pub(crate) limit: Option<u16>,
    /// `true` if ACKs leave as templates.
    #[arg(long)]
    pub(crate) ack_offload: bool,
    /// Frames that one poll takes at most.
    #[arg(long)]
    pub(crate) poll_frames: usize,
    /// Connections to wait for.
    #[arg(long)]
    pub(crate) connections: usize,
    /// Bytes that all connections send together.
    #[arg(long)]
    pub(crate) bytes: u64,
    /// `true` if each byte is sent back.
    #[arg(long)]
    pub(crate) echo: bool,
    /// `true` if each connection is read on a thread of its own.
    #[arg(long)]
    pub(crate) threads: bool,
    /// The time for which a worker that finds nothing pauses, in microseconds.
    #[arg(long)]
    pub(crate) pause_us: u64,
    /// The core of all threads.
    #[arg(long)]
    pub(crate) core: Option<usize>,
}

/// Flags of the driver domain that `rxo-lab menon card` starts; not for users.
#[derive(Args, Clone, Debug)]
pub(crate) struct DomainFlags {
    /// The card's socket.
    #[arg(long)]
    pub(crate) card: PathBuf,
    /// The guest's socket.
    #[arg(long)]
    pub(crate) guest: PathBuf,
    /// The Aggregation Limit; without it each frame is alone.
    #[arg(long)]
    pub(crate) limit: Option<u16>,
    /// Full segments for an ACK on the wire.
    #[arg(long)]
    pub(crate) ack_split: Option<u16>,
}

/// Flags of the server that `rxo-lab paro` starts under valgrind; not for users.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServerFlags {
    /// The way of an ACK.
    #[arg(long)]
    pub(crate) way: String,
    /// The rate at which clients acknowledge.
    #[arg(long)]
    pub(crate) acks: String,
    /// The number of files, and the size of each.
    #[arg(long)]
    pub(crate) files: u32,
    #[arg(long)]
    pub(crate) file_bytes: u64,
    #[arg(long)]
    pub(crate) clients: u16,
    /// Bytes that clients take before counting begins.
    #[arg(long)]
    pub(crate) warm_bytes: u64,
    /// Bytes that clients take while counting.
    #[arg(long)]
    pub(crate) counted_bytes: u64,
}
