//! `rxo run`: what can be typed.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::PolicyFlags;

#[derive(Args, Debug)]
pub(crate) struct RunFlags {
    /// The device that frames come from, and that the host's frames leave by: packet:IFNAME.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) nic: String,

    /// Where the host is: tap:NAME, tun:NAME or packet:IFNAME. A TAP that does not exist is made
    /// with the MTU of the nic and goes away at the end.
    #[arg(long, value_name = "DEVICE", required_unless_present = "restore")]
    pub(crate) host: Option<String>,

    /// Move what the nic has (hardware address, IP addresses, routes, set neighbours) to the TAP for the
    /// run, and give it back at the end, however that comes. Connections through the nic survive both.
    #[arg(long)]
    pub(crate) take_over: bool,

    /// When the nic is deleted, wait for an interface of its name and go on with that; the host keeps its
    /// TAP. Without this the run ends.
    #[arg(long)]
    pub(crate) wait_for_nic: bool,

    /// Only give the nic back what a run took whose processes were all killed, and end. A run on the same
    /// nic does so by itself before it begins.
    #[arg(long, conflicts_with_all = ["host", "take_over", "wait_for_nic", "tap", "dry_run"])]
    pub(crate) restore: bool,

    /// Do without nftables: the kernel's own stack then takes frames at the nic as well as at the
    /// host's device, and the host gets many twice.
    #[arg(long)]
    pub(crate) no_isolation: bool,

    #[command(flatten)]
    pub(crate) policy: PolicyFlags,

    /// Aggregate pure ACKs too: of several that advance, the host is given the last. For a host that
    /// sends much behind rxo and whose peers acknowledge often. Duplicates, SACK and changes of ECN
    /// always pass.
    #[arg(long)]
    pub(crate) ack_aggregate: bool,

    /// Before an ACK of the host that covers many segments, insert those that a host without coalescing
    /// would have sent: one for every 2 segments, or every N from 1 to 64. For peers that count ACKs;
    /// Linux counts bytes and gains nothing.
    #[arg(long, value_name = "2|N|off", default_value = "off")]
    pub(crate) ack_split: String,

    /// What to do about a TCP checksum that the device has not judged.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = ChecksumFlag::Verify)]
    pub(crate) checksum: ChecksumFlag,

    /// How often a line of figures is printed, such as 1s or 500ms; 0s prints only the totals.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) stats: String,

    /// Write everything that passes to this file (pcapng): as it comes and goes at the nic, and at
    /// the host's device.
    #[arg(long, value_name = "FILE")]
    pub(crate) tap: Option<PathBuf>,

    /// A worse network between the nic and the engine, for tests: such as
    /// loss=1%,reorder=1%/3,duplicate=1%,delay=20ms,jitter=1ms,gather=0.25ms,rate=100mbit,
    /// limit=1000,seed=1.
    #[arg(long, value_name = "WHAT")]
    pub(crate) impair: Option<String>,

    /// The same for what the host sends.
    #[arg(long, value_name = "WHAT")]
    pub(crate) impair_back: Option<String>,

    /// Print JSON: one value a line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Check everything, print the effective configuration, and touch nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChecksumFlag {
    /// Take it as right.
    Trust,
    /// Check it before coalescing.
    Verify,
}
