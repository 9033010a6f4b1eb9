//! Flags of `rxo guest`.

use std::path::PathBuf;

use clap::Args;

use super::{LiveFlags, PolicyFlags, WayFlags};

#[derive(Args, Debug)]
pub(crate) struct GuestFlags {
    /// Device on the network side, such as packet:eth1.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) nic: String,

    /// A guest: its name, the unix socket on which rxo waits for its virtual machine, and what its port of
    /// the switch carries. mac=52:54:00:00:00:02 fixes its only address; without it the address is
    /// learned. vlan=7 puts it into this VLAN, without a tag; vlan=all gives it all VLANs with their tags;
    /// without it the guest has the frames that have no tag. rate=100mbit limits what it sends, with
    /// burst=256KiB at once after a pause; storm=5000 limits its frames a second for several others, and
    /// storm=off does not. Once for each guest, at most 24.
    #[arg(
        long,
        value_name = "NAME=PATH[,mac=MAC][,vlan=N|all][,rate=RATE][,burst=BYTES][,storm=N|off]",
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

    /// Policy and hold of every guest. With the policy linux-gro, --hold is auto unless given.
    #[command(flatten)]
    pub(crate) policy: PolicyFlags,

    #[command(flatten)]
    pub(crate) way: WayFlags,

    /// Write all traffic to this pcapng file, as it is at the nic and at each guest.
    #[arg(long, value_name = "FILE")]
    pub(crate) tap: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) live: LiveFlags,
}
