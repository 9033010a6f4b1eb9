//! Flags of `rxo card`.

use clap::Args;

use super::LiveFlags;

#[derive(Args, Debug)]
pub(crate) struct CardFlags {
    /// Device on the network side, such as packet:eth1. The system's own stack does not use its interface meanwhile, as
    /// with rxo run.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) wire: String,

    /// Unix socket on which the host connects by vhost-user: another rxo by virtio:PATH, or a virtual
    /// machine.
    #[arg(long, value_name = "vhost:PATH")]
    pub(crate) guest: String,

    /// Time from a frame to the notification of the host, as rx-usecs of a network card: 1us to 100ms, or
    /// 0us to notify at once.
    #[arg(long, value_name = "TIME", default_value = "0us")]
    pub(crate) moderate: String,

    /// Work that the card does for the host. checksum: validates and fills TCP and UDP checksums. tso:
    /// segments TCP GSO frames. expand: expands ACK templates, which only rxo's own host makes. Both need
    /// checksum. none: nothing.
    #[arg(long, value_name = "LIST", default_value = "checksum,tso")]
    pub(crate) offload: String,

    /// If the interface of the wire is deleted, wait for another of the same name and continue with it; the
    /// host keeps its connection. Without this flag the card ends.
    #[arg(long)]
    pub(crate) wait_for_nic: bool,

    /// Let the system's own stack use the interface of --wire as well.
    #[arg(long)]
    pub(crate) no_isolation: bool,

    #[command(flatten)]
    pub(crate) live: LiveFlags,
}
