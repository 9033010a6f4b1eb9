//! Measures the speed of the engine, compared with its rivals and with its own past.
//!
//! [`Command`] says what each benchmark measures.
//!
//! A separate crate, so that only the laboratory depends on the rivals, one of which is in C. README.md
//! describes how each figure is made.

mod acks;
mod arch;
mod bounds;
mod contender;
mod engine;
mod expected;
mod guests;
mod instructions;
mod lineup;
mod live_tcp;
mod process;
mod race;
mod report;
mod rounds;
mod serve;
mod stages;
mod subject;
mod tcp;
#[cfg(feature = "tun-rs")]
mod tun;
mod tunnel;
mod workers;
mod worst;

use anyhow::Result;
use clap::Subcommand;

/// A benchmark with its options. `rxo-lab bench` runs it.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Nanoseconds per packet, beside DPDK and tun-rs.
    Engine(engine::EngineArgs),
    /// Nanoseconds per packet that is written into a real TUN, beside tun-rs.
    #[cfg(feature = "tun-rs")]
    Tun(tun::TunArgs),
    /// Nanoseconds per ACK, expanded or split.
    Acks(acks::AcksArgs),
    /// Goodput of the endpoint per CPU second, compared with smoltcp.
    Tcp(tcp::TcpArgs),
    /// Files over rxo's own TCP and over Linux's in the same place.
    LiveTcp(live_tcp::LiveTcpArgs),
    /// Files of `rxo serve` and of nginx in the same place.
    Serve(serve::ServeArgs),
    /// A WireGuard tunnel with rxo around it, beside those of others.
    Tunnel(tunnel::TunnelArgs),
    /// Instructions of Linux guests behind rxo, and what rxo and QEMU cost beside them.
    Guests(guests::GuestsArgs),
    /// Workers side by side between simulated queues: what a frame costs each, and what they do together.
    Workers(workers::WorkersArgs),
    /// Instructions per packet under callgrind, compared with the kept counts.
    Instructions(instructions::InstructionsArgs),
    /// What `instructions` runs under callgrind: one workload.
    #[command(hide = true)]
    Counted(instructions::CountedArgs),
}

impl Command {
    /// Runs the benchmark, and prints the figures.
    ///
    /// # Errors
    /// If a rival or a program is missing, a network cannot be made, or the measured data is wrong.
    pub fn run(&self) -> Result<()> {
        match self {
            Self::Engine(args) => engine::run(args),
            #[cfg(feature = "tun-rs")]
            Self::Tun(args) => tun::run(args),
            Self::Acks(args) => acks::run(args),
            Self::Tcp(args) => tcp::run(args),
            Self::LiveTcp(args) => live_tcp::run(args),
            Self::Serve(args) => serve::run(args),
            Self::Tunnel(args) => tunnel::run(args),
            Self::Guests(args) => guests::run(args),
            Self::Workers(args) => workers::run(args),
            Self::Instructions(args) => instructions::run(args),
            Self::Counted(args) => instructions::run_counted(args),
        }
    }
}
