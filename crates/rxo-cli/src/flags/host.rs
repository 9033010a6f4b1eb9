//! Where rxo's own host stands, for every command that runs one.

use clap::Args;

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct HostFlags {
    /// The device that the host is on: packet:IFNAME for an interface that carries no address of the
    /// system's; tap:NAME or tun:NAME for one that is made, with the system at its other end.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) nic: String,

    /// The host's address with its network, such as 10.0.0.2/24 or fd00::2/64; several with
    /// several --ip. Not one that the system has: it sees every frame too, and would answer with a
    /// reset.
    #[arg(long, value_name = "ADDR/PREFIX", required = true)]
    pub(crate) ip: Vec<String>,

    /// Who forwards packets to other networks; one of IPv4 and one of IPv6 at most.
    #[arg(long, value_name = "ADDR")]
    pub(crate) gateway: Vec<String>,

    /// Most neighbours on an Ethernet whose hardware addresses are remembered, 16 to 1048576; beyond, the
    /// one used least recently is forgotten, a gateway never.
    #[arg(long, value_name = "N", default_value_t = 4_096)]
    pub(crate) neighbours: usize,

    /// Memory for what all connections together send and receive, such as 512M or 4G: 1M to 1000G. When it
    /// runs short, new connections get smaller buffers, and none when there is nothing left.
    #[arg(long, value_name = "BYTES", default_value = "2G")]
    pub(crate) memory: String,

    /// Most connections that are closed here and still have something to send, 1 to 1048576; beyond, the
    /// oldest is reset.
    #[arg(long, value_name = "N", default_value_t = 1_024)]
    pub(crate) orphans: usize,

    /// Most connections in TIME-WAIT, 1 to 16777216, less than 100 bytes each; beyond, the oldest is
    /// forgotten.
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    pub(crate) time_waits: usize,
}
