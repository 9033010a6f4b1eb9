//! The program at one end of a tunnel, with other implementations at the other end.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/node.rs"]
mod node;
#[path = "../common/pair.rs"]
mod pair;

use std::path::PathBuf;
use std::process::ExitCode;

use libtest_mimic::Trial;
use rxo_peers::{Tunnel, TunnelKind, TunnelProgram};
use rxo_testbed::traffic::BulkTransfer;

use crate::common::{FEW_BYTES, few_bytes, run};
use crate::node::{Node, inside};
use crate::pair::{assert_intact_both_ways, ours};

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for kind in TunnelKind::FOREIGN {
        for (side, is_near) in [("is_near", true), ("is_far", false)] {
            trials.extend(["1", "2", "4"].map(|threads| {
                let name = format!("{}_{side}_of_rxo_with_threads_{threads}", kind.name());
                Trial::test(name, move || {
                    with(kind, is_near, threads);
                    Ok(())
                })
            }));
        }
        trials.extend(["1", "2", "4"].map(|threads| {
            let name = format!("two_{}_around_rxo_with_threads_{threads}", kind.name());
            Trial::test(name, move || {
                around(kind, threads);
                Ok(())
            })
        }));
    }
    node::prepare();
    run(trials)
}

/// The near end sends the first packet, and so starts the handshake.
fn with(kind: TunnelKind, is_near: bool, threads: &str) {
    let theirs = TunnelProgram::foreign(kind, &installed());
    let ours = ours(&["--threads", threads]);
    let (near, far) = if is_near { (&theirs, &ours) } else { (&ours, &theirs) };
    assert_intact_both_ways(&Tunnel::start(near, far).unwrap());
}

/// Two peers of one interface send to it and receive from it, all at once.
fn around(kind: TunnelKind, threads: &str) {
    let theirs = TunnelProgram::foreign(kind, &installed());
    let file = theirs.file().display().to_string();
    let spokes = [(); 2].map(|()| Node::start_program("spoke", &file, theirs.foreground()));
    let (hub, spokes) = node::star(Node::start("hub", &["--threads", threads]), spokes);
    for version in [0, 1] {
        let transfers = spokes.iter().zip([2, 3]).flat_map(|(spoke, n)| {
            let ways = [(spoke, &hub, inside(1)), (&hub, spoke, inside(n))];
            ways.map(|(from, to, addresses)| {
                BulkTransfer::start(&from.net, &to.net, addresses[version], &few_bytes()).unwrap()
            })
        });
        for transfer in transfers.collect::<Vec<_>>() {
            let report = transfer.wait().unwrap();
            assert!(report.is_intact() && report.received_bytes == FEW_BYTES, "{report:?}");
        }
    }
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
