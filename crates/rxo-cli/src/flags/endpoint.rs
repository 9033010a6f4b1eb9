//! What `rxo cat`, `rxo sink` and `rxo source` share: a host of rxo's own, and who is at the other
//! end.

use clap::{Args, ValueEnum};

use super::HostFlags;

#[derive(Args, Clone, Debug)]
pub(crate) struct EndpointFlags {
    /// Whom to connect to, such as 10.0.0.1:7000 or `[fd00::1]:7000`.
    #[arg(value_name = "ADDR:PORT")]
    pub(crate) peer: Option<String>,

    /// Wait to be connected to: PORT on all addresses of --ip, or ADDR:PORT.
    #[arg(long, value_name = "PORT")]
    pub(crate) listen: Option<String>,

    #[command(flatten)]
    pub(crate) host: HostFlags,

    /// The host's address on an Ethernet; that of the interface, or for a TAP one of its own.
    #[arg(long, value_name = "MAC")]
    pub(crate) mac: Option<String>,

    /// The coalescing policy of what arrives; `rxo policies` lists them.
    #[arg(long, value_name = "NAME", default_value = "remember")]
    pub(crate) policy: String,

    /// Change fields of the policy, such as max_segments=16; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1)]
    pub(crate) set: Vec<String>,

    /// Which acknowledgements an aggregate causes.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = AcksFlag::Templates)]
    pub(crate) acks: AcksFlag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AcksFlag {
    /// One for each second segment, as a template and the numbers of those after it.
    Templates,
    /// One for all of it: fewer, and a peer that counts them grows its window more slowly.
    Stretch,
}
