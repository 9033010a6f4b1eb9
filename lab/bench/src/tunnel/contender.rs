//! The measured tunnels: rxo-tunnel, complete and without some parts, and other implementations.

use std::path::Path;

use anyhow::{Context, Result};
use rxo_peers::{Tunnel, TunnelKind, TunnelProgram};

/// A tunnel with the same program at both ends, which runs for the whole measurement.
pub(super) struct Contender {
    pub(super) name: &'static str,
    pub(super) tunnel: Tunnel,
}

/// rxo-tunnel on one thread, on one for each direction, and without one or both parts, to show the gain of each part.
const OURS: [(&str, &[&str]); 5] = [
    (RXO, &["--threads", "1"]),
    ("rxo-tunnel --threads 2", &["--threads", "2"]),
    ("without coalescing", &["--no-coalescing"]),
    ("without trains", &["--no-trains"]),
    ("without both", &["--no-coalescing", "--no-trains"]),
];
pub(super) const RXO: &str = "rxo-tunnel";

/// Starts all tunnels: rxo-tunnel in the file `ours`, and the programs in the folder `foreign`.
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
