//! Flags of every command that runs rxo's own host: device, addresses, limits.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::UserFlags;

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct HostFlags {
    /// Device of the host: packet:IFNAME or xdp:IFNAME for an interface without an address of the system's own;
    /// tap:NAME or tun:NAME for a new interface whose other end is the system; virtio:PATH for a guest of
    /// the process that listens on this unix socket, such as rxo run --host vhost:PATH; vhost:PATH for a
    /// virtual machine that connects to this unix socket, which the host creates.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) nic: String,

    /// Address of the host with its prefix, such as 10.0.0.2/24 or fd00::2/64. May be given several
    /// times. Must not be an address of the system's own: the system would answer with resets.
    #[arg(long, value_name = "ADDR/PREFIX", required = true)]
    pub(crate) ip: Vec<String>,

    /// Gateway to other networks; at most one for IPv4 and one for IPv6.
    #[arg(long, value_name = "ADDR")]
    pub(crate) gateway: Vec<String>,

    /// Maximum number of neighbours (hardware addresses) that are remembered, 16 to 1048576. A full table evicts the
    /// least recently used neighbour, never a gateway.
    #[arg(long, value_name = "N", default_value_t = 4_096)]
    pub(crate) neighbours: usize,

    /// Buffer memory of all connections together, 1M to 1000G, such as 512M or 4G. If it runs short, buffers
    /// stop growing, then shrink, and new connections get smaller ones; if none is left, they are refused.
    #[arg(long, value_name = "BYTES", default_value = "2G")]
    pub(crate) memory: String,

    /// Maximum buffer memory of one connection in each direction, 64KiB to 1000M, such as 1M or 16MiB. Buffers start at
    /// 64 KiB and grow as far as the path needs it; default: 4 MiB for sending, 6 MiB for receiving.
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_buffer: Option<String>,

    /// Congestion control: cubic; reno; or bbr (version 1), which sends at the rate at which data arrives, whatever is lost, and
    /// gets less than an equal share beside Linux's BBR.
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(crate) congestion: String,

    /// Bytes that a connection may send before the first acknowledgement: rfc6928, which is ten segments but
    /// at most 14,600 bytes or two segments; or a number of segments of any size, 1 to 64. Linux uses ten
    /// segments. Bytes beyond RFC 6928's limit are paced over half a round trip.
    #[arg(long, value_name = "SEGMENTS", default_value = "rfc6928")]
    pub(crate) initial_window: String,

    /// Maximum number of orphans, 1 to 1048576: connections that were closed here and still have data to send. Beyond
    /// that, those are reset whose peers have taken less than 16 KiB for a minute. Any orphan ends if its peer takes
    /// less than 64 KiB in two minutes; one that takes more gets everything.
    #[arg(long, value_name = "N", default_value_t = 1_024)]
    pub(crate) orphans: usize,

    /// Modules that process frames before the stack: on (the same as pure-ack), off, or a list of pure-ack,
    /// which consumes acknowledgements without a buffer; syn-flood, which counts half-open connections;
    /// accounting, which counts arriving traffic; filter, which --filter turns on. The totals show the
    /// consumed frames, and the reasons why others went to the stack.
    #[arg(long, value_name = "MODULES", default_value = "off")]
    pub(crate) fast_path: String,

    /// Drop or pass arriving packets, such as "drop from 10.0.0.0/8 port 53 to 192.0.2.1". May be given
    /// several times: the first rule that matches decides, and a packet that matches none passes.
    #[arg(long, value_name = "RULE")]
    pub(crate) filter: Vec<String>,

    /// Senders that share one account of --fast-path accounting. A value other than the default needs that module.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = AccountFlag::Network)]
    pub(crate) account_by: AccountFlag,

    /// Write all packets of the host to this capture (pcapng), including those that the fast path consumes.
    #[arg(long, value_name = "FILE")]
    pub(crate) tap: Option<PathBuf>,

    /// Maximum number of connections in TIME-WAIT, 1 to 16777216, less than 100 bytes each. Beyond that, the oldest is
    /// forgotten.
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    pub(crate) time_waits: usize,

    #[command(flatten)]
    pub(crate) user: UserFlags,
}

/// The senders that share one account of the fast path's module `accounting`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccountFlag {
    /// One account for each network of senders: the first 24 bits of an IPv4 address, 64 of an IPv6 address.
    #[default]
    Network,
    /// One account for each flow.
    Flow,
}
