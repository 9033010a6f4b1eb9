//! The tunnels that are measured: rxo's example whole and without its parts, and those of others.

use std::path::Path;

use anyhow::{Context, Result};
use rxo_peers::{Tunnel, TunnelKind, TunnelProgram};

/// A tunnel with the same program at both ends, which stays up for the whole run.
pub(super) struct Contender {
    pub(super) name: &'static str,
    pub(super) tunnel: Tunnel,
}

/// The example whole, and without one part or both: that says what each gives.
const OURS: [(&str, &[&str]); 4] = [
    (RXO, &[]),
    ("without coalescing", &["--no-coalescing"]),
    ("without trains", &["--no-trains"]),
    ("without both", &["--no-coalescing", "--no-trains"]),
];
pub(super) const RXO: &str = "rxo-tunnel";

/// Starts all: the example `ours`, and the programs in the folder `foreign`.
pub(super) fn start(ours: &Path, foreign: &Path) -> Result<Vec<Contender>> {
    let own = OURS.map(|(name, arguments)| (name, TunnelProgram::rxo(ours, arguments)));
    let others =
        TunnelKind::FOREIGN.map(|kind| (kind.name(), TunnelProgram::foreign(kind, foreign)));
    own.into_iter()
        .chain(others)
        .map(|(name, program)| {
            let tunnel = Tunnel::start(&program, &program).with_context(|| name.to_owned())?;
            Ok(Contender { name, tunnel })
        })
        .collect()
}
