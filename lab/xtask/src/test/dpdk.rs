//! Tests `capi/examples/forward.c` in DPDK: its mbufs come from a capture, leave as chains, and must have the
//! same content.

use anyhow::Result;

use super::c::Kit;
use super::report::Report;
use super::steps::Scene;
use crate::apt;
use crate::sh::Program;
use crate::workspace::Workspace;

/// DPDK's options for a run without huge pages, devices, and files outside the target folder.
const EAL: &str = "--no-huge --no-pci -m 64 --no-shconf --no-telemetry --log-level 4";

/// The coalescing policy of the pcap port.
const POLICY: &str = "linux-gro max_bytes=9000";

/// Runs the example from one capture file to another and compares them.
///
/// # Errors
/// DPDK is missing, the program fails, or the captures differ.
pub(super) fn run(scene: &Scene, report: &mut Report) -> Result<()> {
    apt::ensure(&[apt::CXX, apt::PKG_CONFIG, apt::DPDK])?;
    let kit = Kit::install(scene)?;
    let (from, to) = (kit.capture()?, kit.path("out.pcap"));
    let forward = kit.compile("examples/forward.c", "", &[], &kit.flags(&["rxo", "libdpdk"])?)?;
    let device = format!("net_pcap0,rx_pcap={from},tx_pcap={to}");
    let words = EAL.split(' ').chain(["--vdev", &device, "--", POLICY]);
    kit.run(&forward, &words.collect::<Vec<_>>())?;
    scene.checked("build --quiet", "--workspace --bin rxo").run()?;
    let Workspace { root, target, .. } = &scene.workspace;
    let rxo = target.join("ci/rxo");
    Program::new(root, &rxo.to_string_lossy(), ["verify", &from, &to]).run()?;
    report.note("mbufs came and left as chains that say the same".to_owned());
    Ok(())
}
