//! Flags of `rxo run`.

use std::path::PathBuf;

use clap::Args;

use super::{LiveFlags, PolicyFlags, WayFlags, WorkersFlags};

#[derive(Args, Debug)]
pub(crate) struct RunFlags {
    /// File of TOML with flags of this command, each by its long name: hold = "auto", take-over = true, set =
    /// ["flows=8"]. Flags on the command line override it. `rxo ctl SOCKET reload` and SIGHUP read it again.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Device on the network side, such as packet:eth1, or xdp:eth1 by AF_XDP.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) nic: String,

    /// Device on the host side: tap:NAME, tun:NAME, packet:IFNAME or vhost:PATH. A TAP that does not
    /// exist is created with the MTU of the nic and removed at the end. vhost:PATH is a guest: a virtual
    /// machine that connects to this unix socket by vhost-user.
    #[arg(long, value_name = "DEVICE", required_unless_present = "restore")]
    pub(crate) host: Option<String>,

    /// The most memory that the guest of vhost:PATH may share, such as 2G.
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Accept memory with holes from the guest of vhost:PATH. rxo fills them, and the system charges them to rxo.
    #[arg(long, requires = "memory")]
    pub(crate) sparse: bool,

    /// Move the nic's name, hardware address, IP addresses, routes and permanent neighbours to the TAP, and give the
    /// nic what the TAP has at the end, even after a crash. Meanwhile the nic is called NAME-nic. Connections through
    /// the nic survive both.
    #[arg(long)]
    pub(crate) take_over: bool,

    /// End the run and give everything back after this time, such as 60s, unless `rxo ctl SOCKET confirm` comes before:
    /// so that a remote session that is cut comes back. Needs --control.
    #[arg(long, value_name = "TIME", requires = "control", conflicts_with = "restore")]
    pub(crate) confirm: Option<String>,

    /// If the nic is deleted, wait for an interface of the same name and continue with it; the host keeps
    /// its TAP. Without this flag the run ends.
    #[arg(long)]
    pub(crate) wait_for_nic: bool,

    /// Restore the nic after a run whose processes were all killed, and exit. The next run on the same nic
    /// also restores it, without this flag.
    #[arg(long, conflicts_with_all = ["host", "take_over", "wait_for_nic", "tap", "dry_run"])]
    pub(crate) restore: bool,

    /// Do not keep the kernel off the nic. Works without nftables, but the kernel then takes frames at the
    /// nic as well as at the host's device, and the host gets many of them twice.
    #[arg(long)]
    pub(crate) no_isolation: bool,

    /// Let a later rxo with the same flags take over from this one, such as a new version: it finds this one by this socket,
    /// and goes on with both devices, and the sockets of --control and --metrics. If it cannot, this one goes on. Only its user
    /// and root may connect.
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["confirm", "restore"])]
    pub(crate) upgrade: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) policy: PolicyFlags,

    /// Also aggregate pure ACKs: of several that advance, the host gets the last. For a bulk sender
    /// behind rxo whose peers acknowledge often. Duplicate ACKs, SACK and changes of ECN always pass.
    #[arg(long)]
    pub(crate) ack_aggregate: bool,

    #[command(flatten)]
    pub(crate) way: WayFlags,

    /// Write all traffic to this pcapng file, as it is at the nic and at the host's device.
    #[arg(long, value_name = "FILE")]
    pub(crate) tap: Option<PathBuf>,

    /// Impair the traffic to the host, for tests, such as
    /// loss=1%,reorder=1%/3,duplicate=1%,delay=20ms,jitter=1ms,gather=0.25ms,rate=100mbit,
    /// limit=1000,seed=1.
    #[arg(long, value_name = "WHAT")]
    pub(crate) impair: Option<String>,

    /// Impair the traffic from the host, with the same words.
    #[arg(long, value_name = "WHAT")]
    pub(crate) impair_back: Option<String>,

    #[command(flatten)]
    pub(crate) workers: WorkersFlags,

    #[command(flatten)]
    pub(crate) live: LiveFlags,
}
