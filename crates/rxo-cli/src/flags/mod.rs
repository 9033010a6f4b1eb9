//! The flags of all commands, as they are typed.
//!
//! This module is separate from the meaning of the flags: help and parsing come from these definitions alone.
//! Each command makes its plan from its flags; the plan refuses an invalid value, and names the values that are
//! accepted. The flags of `rxo demo` and `rxo calibrate` are in [`rxo_demo::flags`].

mod analyze;
mod bulk;
mod card;
mod cast;
mod cat;
mod coalesce;
mod compare;
mod control;
mod ctl;
mod doctor;
mod endpoint;
mod expand;
mod guest;
mod host;
mod live;
mod log;
mod policies;
mod policy;
mod run;
mod sandbox;
mod serve;
mod verify;
mod workers;

use clap::{Parser, Subcommand};
use rxo_demo::flags::{CalibrateFlags, DemoFlags};

pub(crate) use analyze::AnalyzeFlags;
pub(crate) use bulk::{MeterFlags, SinkFlags, SourceFlags};
pub(crate) use card::CardFlags;
pub(crate) use cast::{CastCommand, CastFlags, CastJoinFlags, CastReceiveFlags, CastSendFlags};
pub(crate) use cat::CatFlags;
pub(crate) use coalesce::CoalesceFlags;
pub(crate) use compare::CompareFlags;
pub(crate) use control::{ControlFlags, MetricsFlags};
pub(crate) use ctl::CtlFlags;
pub(crate) use doctor::DoctorFlags;
pub(crate) use endpoint::{AcksFlag, EndpointFlags};
pub(crate) use expand::ExpandFlags;
pub(crate) use guest::GuestFlags;
pub(crate) use host::{AccountFlag, HostFlags};
pub(crate) use live::{ChecksumFlag, LiveFlags, WayFlags};
pub(crate) use log::LogFlags;
pub(crate) use policies::PoliciesFlags;
pub(crate) use policy::{PolicyFlags, ReplayFlags};
pub(crate) use run::RunFlags;
pub(crate) use sandbox::{SandboxFlags, UserFlags};
pub(crate) use serve::ServeFlags;
pub(crate) use verify::VerifyFlags;
pub(crate) use workers::WorkersFlags;

/// The version of this build, with its features.
const VERSION: &str = if cfg!(feature = "parquet") {
    concat!(env!("CARGO_PKG_VERSION"), " (features: parquet)")
} else {
    concat!(env!("CARGO_PKG_VERSION"), " (features: none)")
};

/// TCP receive coalescing in user space: the stack processes one large packet instead of many small ones.
#[derive(Debug, Parser)]
#[command(name = "rxo", version = VERSION)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Coalesce traffic between a network device and a host.
    Run(RunFlags),
    /// Play the network card of a host: move frames between an interface and a virtio ring.
    Card(CardFlags),
    /// Coalesce for several virtual machines, with a switch between them and a network device.
    Guest(GuestFlags),
    /// Show what this machine offers to a run, what a run would break, and the remedies.
    Doctor(DoctorFlags),
    /// Measure in a private network what coalescing gains on this machine.
    Demo(DemoFlags),
    /// Show what coalescing would do to captured traffic, with which settings, and what limits it.
    Analyze(AnalyzeFlags),
    /// Compare coalescing policies on captured traffic: built-in ones, and those in files.
    Compare(CompareFlags),
    /// Coalesce a capture: write it as the host's stack would see it. Nothing is lost.
    Coalesce(CoalesceFlags),
    /// Restore the capture that `rxo coalesce` was given, byte for byte.
    Expand(ExpandFlags),
    /// Compare two captures flow by flow, whatever packets the streams were cut into.
    Verify(VerifyFlags),
    /// Measure the cost of receiving on this machine, for analyze --costs.
    Calibrate(CalibrateFlags),
    /// Serve the files of a directory over HTTP, on rxo's own TCP/IP stack.
    Serve(ServeFlags),
    /// Connect standard input and output to a peer, on rxo's own TCP/IP stack.
    Cat(CatFlags),
    /// Send one file to many hosts at once, reliably, over a multicast group.
    Cast(CastFlags),
    /// Receive over rxo's own TCP, and show rate and processor cost.
    Sink(SinkFlags),
    /// Send over rxo's own TCP, and show rate and processor cost.
    Source(SourceFlags),
    /// Send a request to a running rxo: show or change its state.
    Ctl(CtlFlags),
    /// List the coalescing policies, their rules and their sources.
    Policies(PoliciesFlags),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_line_of_the_readme_is_read() {
        let line = "rxo run --nic packet:eth1 --host tap:rxo0 --policy remember --set flows=8 \
                    max_bytes=9000 --set psh=keep --checksum trust --hold 100us --stats 1s --json";
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        let Command::Run(flags) = cli.command else { panic!("{cli:?}") };
        assert_eq!(flags.policy.set, ["flows=8", "max_bytes=9000", "psh=keep"]);
        let LiveFlags { json, dry_run, .. } = flags.live;
        assert!(json && !dry_run && flags.way.checksum == ChecksumFlag::Trust);
    }
}
