//! How fast the engine is, beside its rivals and beside itself yesterday.
//!
//! * `engine` times rxo, DPDK's `rte_gro` and tun-rs over the same workloads in the same run.
//! * `acks` times what ACK offload does for one ACK.
//! * `tcp` measures the endpoint's goodput for each CPU second, beside smoltcp.
//! * `instructions` counts rxo's instructions per packet under callgrind, which no noise moves, and
//!   compares them with the counts kept in `instructions.json`.
//!
//! It is a package of its own so that the rivals, one of them in C, are nobody's dependency.
//! README.md says how each figure is made. Imported by nobody.

mod acks;
mod arch;
mod bounds;
mod contender;
mod engine;
mod expected;
mod instructions;
mod lineup;
mod machine;
mod race;
mod report;
mod stats;
mod tcp;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Benchmarks of the receive engine.
#[derive(Parser, Debug)]
#[command(name = "rxo-bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Nanoseconds per packet, beside DPDK and tun-rs.
    Engine(engine::EngineArgs),
    /// Nanoseconds per ACK expanded or split.
    Acks(acks::AcksArgs),
    /// Goodput of the endpoint for each CPU second, beside smoltcp.
    Tcp(tcp::TcpArgs),
    /// Instructions per packet under callgrind, beside the counts kept.
    Instructions(instructions::InstructionsArgs),
    /// What `instructions` runs under callgrind: one workload, counted.
    #[command(hide = true)]
    Counted(instructions::CountedArgs),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Engine(args) => engine::run(&args),
        Command::Acks(args) => acks::run(&args),
        Command::Tcp(args) => tcp::run(&args),
        Command::Instructions(args) => instructions::run(&args),
        Command::Counted(args) => instructions::run_counted(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rxo-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
