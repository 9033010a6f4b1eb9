//! Flags that `rxo cat`, `rxo sink` and `rxo source` share: rxo's own host, and its peer.

use clap::{Args, ValueEnum};

use super::HostFlags;

#[derive(Args, Clone, Debug)]
pub(crate) struct EndpointFlags {
    /// Peer to connect to, such as 10.0.0.1:7000 or `[fd00::1]:7000`.
    #[arg(value_name = "ADDR:PORT")]
    pub(crate) peer: Option<String>,

    /// Wait for a connection instead of connecting: PORT on all addresses of --ip, or ADDR:PORT.
    #[arg(long, value_name = "PORT")]
    pub(crate) listen: Option<String>,

    #[command(flatten)]
    pub(crate) host: HostFlags,

    /// Hardware address of the host. Default: that of the interface, or a generated one for a TAP.
    #[arg(long, value_name = "MAC")]
    pub(crate) mac: Option<String>,

    /// Coalescing policy for arriving segments; `rxo policies` lists them.
    #[arg(long, value_name = "NAME", default_value = "remember")]
    pub(crate) policy: String,

    /// Change a field of the policy, such as max_segments=16. May be given several times.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1)]
    pub(crate) set: Vec<String>,

    /// Method of acknowledging data that arrives in order.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = AcksFlag::Stretch)]
    pub(crate) acks: AcksFlag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AcksFlag {
    /// Sends one ACK for all data that has arrived at once, as Linux does for an aggregate.
    Stretch,
    /// Sends one ACK for every second segment, as a template that is expanded: for a peer that counts ACKs, and not
    /// bytes, to grow its window.
    Templates,
}
