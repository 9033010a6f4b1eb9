//! `cargo xtask bench …`: the benchmarks, with the rivals they are measured beside.
//!
//! The benchmarks themselves are the package `rxo-bench`; here they get the system packages their
//! rivals need, because a benchmark without its rival says little.

use anyhow::{Result, bail};

use crate::UsageError;
use crate::apt;
use crate::sh::{self, Program};
use crate::workspace::Workspace;

/// Runs `rxo-bench` in release with `arguments` as they are.
///
/// # Errors
/// No benchmark of that name, or the benchmark fails.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments.first().map(String::as_str) {
        Some("engine") => fetch_dpdk()?,
        Some("instructions") => apt::ensure(&[apt::VALGRIND])?,
        Some(other) => {
            bail!(UsageError(format!("no benchmark {other:?}; there are: engine, instructions")))
        }
        None => bail!(UsageError("which benchmark? there are: engine, instructions".to_owned())),
    }
    let workspace = Workspace::load()?;
    let mut all = vec!["run", "--quiet", "--release", "--package", "rxo-bench"];
    all.extend(dpdk_feature().split_whitespace());
    all.push("--");
    all.extend(arguments.iter().map(String::as_str));
    Program::new(&workspace.root, "cargo", all).run_aside()
}

/// The arguments that make cargo build DPDK in, if it is installed.
pub(crate) fn dpdk_feature() -> &'static str {
    if apt::DPDK.is_there() { "--features dpdk" } else { "" }
}

/// Installs DPDK as root; any other user is told how, and measures without it.
fn fetch_dpdk() -> Result<()> {
    if sh::is_root() {
        return apt::ensure(&[apt::PKG_CONFIG, apt::DPDK]);
    }
    if !apt::DPDK.is_there() {
        eprintln!(
            "bench: DPDK is left out: libdpdk is not installed; \
             `sudo apt-get install pkg-config libdpdk-dev` adds it"
        );
    }
    Ok(())
}
