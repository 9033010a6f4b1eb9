//! `cargo xtask bench …`: the benchmarks, with the rivals they are measured beside.
//!
//! The benchmarks themselves are the package `rxo-bench`; here they get the system packages their
//! rivals need, because a benchmark without its rival says little.

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

const ALL: &str =
    "acks, analyze, bindings, engine, guests, instructions, live-tcp, serve, tcp, tunnel";

/// Runs `rxo-lab bench` in release with `arguments` as they are, and gives back its exit code. Standard
/// output is the benchmark's alone.
///
/// # Errors
/// No benchmark of that name, or a system package is missing.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    match arguments.first().map(String::as_str) {
        Some("analyze") => return analyze::run(&arguments[1..]),
        Some("bindings") => return bindings::run(&arguments[1..]),
        Some("acks" | "tcp") => {}
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

/// The arguments that make cargo build DPDK in, if it is installed.
fn dpdk_feature() -> &'static str {
    if apt::DPDK.is_there() { "--features dpdk" } else { "" }
}

/// Builds the command that is measured, and installs what guests need.
fn prepare_guests() -> Result<()> {
    apt::ensure(&[apt::QEMU, apt::BUSYBOX])?;
    fetch_rival(&[apt::TESTPMD])?;
    build_rxo()
}

/// Builds the example that is measured, and installs those of others.
fn prepare_tunnels() -> Result<()> {
    let workspace = Workspace::load()?;
    tunnels::ensure(&workspace)?;
    Program::cargo(&workspace.root, "build --quiet --release -p rxo-tunnel").run_aside()
}

/// Builds the command that is measured.
fn build_rxo() -> Result<()> {
    let build = Program::cargo(&Workspace::load()?.root, "build --quiet --release -p rxo-cli");
    build.run_aside()
}

/// Installs the packages of a rival as root; any other user is told how, and measures without it.
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
