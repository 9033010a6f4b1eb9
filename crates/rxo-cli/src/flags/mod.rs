//! What was typed, and nothing more.
//!
//! Kept apart from what it means: the help and the reading come from these definitions alone,
//! and each command makes its plan from them, where a value that cannot be is refused with what
//! would be accepted. What can be typed after `rxo demo`, `rxo calibrate` and `rxo repro` stands in
//! [`rxo_repro::flags`].

mod analyze;
mod bulk;
mod cat;
mod coalesce;
mod endpoint;
mod expand;
mod host;
mod policies;
mod policy;
mod run;
mod serve;
mod verify;

use clap::{Parser, Subcommand};
use rxo_repro::flags::{CalibrateFlags, DemoFlags, ReproFlags};

pub(crate) use analyze::AnalyzeFlags;
pub(crate) use bulk::{MeterFlags, SinkFlags, SourceFlags};
pub(crate) use cat::CatFlags;
pub(crate) use coalesce::CoalesceFlags;
pub(crate) use endpoint::{AcksFlag, EndpointFlags};
pub(crate) use expand::ExpandFlags;
pub(crate) use host::HostFlags;
pub(crate) use policies::PoliciesFlags;
pub(crate) use policy::{PolicyFlags, ReplayFlags};
pub(crate) use run::{ChecksumFlag, RunFlags};
pub(crate) use serve::ServeFlags;
pub(crate) use verify::VerifyFlags;

/// Receive offload in user space: many frames for the price of one.
#[derive(Debug, Parser)]
#[command(name = "rxo", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Coalesce what a device receives on its way to a host, and carry back what the host sends.
    Run(RunFlags),
    /// Show in a private network what coalescing gains on this machine.
    Demo(DemoFlags),
    /// Say what coalescing would do to the traffic in captures, with which settings, and why not more.
    Analyze(AnalyzeFlags),
    /// Write a capture as the host's stack would see it, with aggregates; nothing of it is lost.
    Coalesce(CoalesceFlags),
    /// Give back the capture that `rxo coalesce` was given, byte for byte.
    Expand(ExpandFlags),
    /// Compare two captures flow by flow, however their streams are cut into packets.
    Verify(VerifyFlags),
    /// Measure what receiving costs on this machine, for analyze --costs.
    Calibrate(CalibrateFlags),
    /// Serve the files of a directory over HTTP, on a TCP/IP stack of rxo's own.
    Serve(ServeFlags),
    /// Pipe standard input and output to and from a peer, on a TCP/IP stack of rxo's own.
    Cat(CatFlags),
    /// Receive over rxo's own TCP and say how fast and at what cost.
    Sink(SinkFlags),
    /// Send over rxo's own TCP and say how fast and at what cost.
    Source(SourceFlags),
    /// List the coalescing policies, their rules and where they come from.
    Policies(PoliciesFlags),
    /// Repeat the experiments of the papers and show the results beside theirs.
    Repro(ReproFlags),
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
        assert!(flags.json && !flags.dry_run && flags.checksum == ChecksumFlag::Trust);
    }
}
