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
}
