//! `cargo xtask bench …`: runs the benchmarks, and installs the rival programs that they compare rxo to.
//!
//! The benchmarks themselves are the package `rxo-bench`; this module installs the system packages of their
//! rivals, because a figure without a comparison means little.

mod analyze;
mod bindings;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::UsageError;
use crate::apt;
use crate::lab;
use crate::sh::{self, Program};
use crate::tunnels;
use crate::workspace::Workspace;

const ALL: &str = "acks, analyze, bindings, engine, guests, instructions, live-tcp, serve, tcp, tun, tunnel, workers";

/// Runs `rxo-lab bench` in release with `arguments` unchanged, and returns its exit code. Only the benchmark
/// writes to standard output.
///
/// # Errors
/// There is no benchmark of that name, or a system package is missing.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    match arguments.first().map(String::as_str) {
        Some("analyze") => return analyze::run(&arguments[1..]),
        Some("bindings") => return bindings::run(&arguments[1..]),
        Some("acks" | "tcp" | "tun" | "workers") => {}
        Some("engine") => fetch_rival(&[apt::PKG_CONFIG, apt::DPDK])?,
        Some("guests") => prepare_guests()?,
        Some("live-tcp") => build_rxo()?,
        Some("serve") => {
            apt::ensure(&[apt::NGINX, apt::WRK, apt::CURL])?;
            if arguments.iter().any(|argument| argument == "--guest") {
                apt::ensure(&[apt::QEMU, apt::BUSYBOX])?;
            }
            build_rxo()?;
        }
        Some("tunnel") => prepare_tunnels()?,
        Some("instructions") => apt::ensure(&[apt::VALGRIND])?,
        Some(other) => {
            bail!(UsageError(format!("no benchmark {other:?}; there are: {ALL}")))
        }
        None => bail!(UsageError(format!("which benchmark? there are: {ALL}"))),
    }
    lab::run(dpdk_feature(), "bench", arguments)
}

/// Returns cargo's arguments that build DPDK in; empty if DPDK is not installed.
fn dpdk_feature() -> &'static str {
    if apt::DPDK.is_there() { "--features dpdk" } else { "" }
}

/// Builds the measured command, and installs the packages that guests need.
fn prepare_guests() -> Result<()> {
    apt::ensure(&[apt::QEMU, apt::BUSYBOX])?;
    fetch_rival(&[apt::TESTPMD])?;
    build_rxo()
}

/// Builds rxo-tunnel, which is measured, and installs the tunnel programs that it is compared to.
fn prepare_tunnels() -> Result<()> {
    let workspace = Workspace::load()?;
    tunnels::ensure(&workspace)?;
    Program::cargo(&workspace.root, "build --quiet --release -p rxo-tunnel").run_aside()
}

/// Builds the measured command, `rxo`.
fn build_rxo() -> Result<()> {
    let build = Program::cargo(&Workspace::load()?.root, "build --quiet --release -p rxo-cli");
    build.run_aside()
}

/// Installs the packages of a rival if this process is root. Otherwise prints the command that installs them,
/// and the benchmark runs without the rival.
fn fetch_rival(packages: &[apt::Package]) -> Result<()> {
    let present = apt::ensure(packages);
    if sh::is_root() {
        return present;
    }
    if let Err(missing) = present {
        eprintln!("bench: DPDK is left out: {missing}");
    }
    Ok(())
}
