//! Flags of `rxo guest`.

use std::path::PathBuf;

use clap::Args;

use super::{LiveFlags, PolicyFlags, WayFlags, WorkersFlags};

#[derive(Args, Debug)]
pub(crate) struct GuestFlags {
    /// Device on the network side, such as packet:eth1, or xdp:eth1 by AF_XDP.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) nic: String,

    /// A guest: its name, the unix socket on which rxo waits for its virtual machine, and its rights.
    /// mac=52:54:00:00:00:02 is its only address; learn=yes lets it have any, also several. vlan=7 puts it
    /// into this VLAN, without a tag; vlan=all gives it all VLANs with their tags; without it the guest has the
    /// frames that have no tag. ip=192.0.2.7, once for each, are its only IP addresses. isolated=yes keeps it
    /// from other isolated guests; router=yes and dhcp=yes let it advertise routes and answer DHCP. memory=2G
    /// bounds the memory that it may share; with sparse=yes that may have holes, which rxo fills.
    /// rate=100mbit limits what it sends, with burst=256KiB at once after a pause; storm=5000 limits its frames
    /// a second for several others, and storm=off does not. Once for each guest, at most 24.
    #[arg(
        long,
        value_name = "NAME=PATH,mac=MAC|learn=yes[,vlan=N|all][,ip=IP][,rate=RATE]...",
        required = true
    )]
    pub(crate) vhost: Vec<String>,

    /// If the nic is deleted, wait for an interface of the same name and continue with it; the guests keep
    /// their connections. Without this flag the run ends.
    #[arg(long)]
    pub(crate) wait_for_nic: bool,

    /// Do not keep the kernel off the nic. Works without nftables, but the kernel then also takes frames
    /// that are for guests, and answers some.
    #[arg(long)]
    pub(crate) no_isolation: bool,

    /// Let a later rxo with the same flags take over from this one, such as a new version: it finds this one by this socket,
    /// and goes on with the guests, their rings, and the sockets of --control and --metrics. If it cannot, this one goes
    /// on. Only its user and root may connect.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) upgrade: Option<PathBuf>,

    /// Policy and hold of every guest. With the policy linux-gro, --hold is auto unless given.
    #[command(flatten)]
    pub(crate) policy: PolicyFlags,

    #[command(flatten)]
    pub(crate) way: WayFlags,

    #[command(flatten)]
    pub(crate) workers: WorkersFlags,

    /// Write all traffic to this pcapng file, as it is at the nic and at each guest.
    #[arg(long, value_name = "FILE")]
    pub(crate) tap: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) live: LiveFlags,
}
