//! The program at one end of a tunnel, with other implementations at the other end.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/pair.rs"]
mod pair;

use std::path::PathBuf;
use std::process::ExitCode;

use libtest_mimic::Trial;
use rxo_peers::{Tunnel, TunnelKind, TunnelProgram};

use crate::common::run;
use crate::pair::{assert_intact_both_ways, ours};

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for kind in TunnelKind::FOREIGN {
        for (side, is_near) in [("is_near", true), ("is_far", false)] {
            trials.extend(["1", "4"].map(|threads| {
                let name = format!("{}_{side}_of_rxo_with_threads_{threads}", kind.name());
                Trial::test(name, move || {
                    with(kind, is_near, threads);
                    Ok(())
                })
            }));
        }
    }
    run(trials)
}

/// The near end sends the first packet, and so starts the handshake.
fn with(kind: TunnelKind, is_near: bool, threads: &str) {
    let theirs = TunnelProgram::foreign(kind, &installed());
    let ours = ours(&["--threads", threads]);
    let (near, far) = if is_near { (&theirs, &ours) } else { (&ours, &theirs) };
    assert_intact_both_ways(&Tunnel::start(near, far).unwrap());
}

/// Returns the directory into which `cargo xtask` installs the other implementations, below the target
/// directory that contains this test.
fn installed() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let folders = here.ancestors().map(|folder| folder.join("tunnels/bin"));
    folders.into_iter().find(|folder| folder.is_dir()).unwrap_or_else(|| {
        panic!("the programs of others are not installed; `cargo xtask bench tunnel` does it")
    })
}
