//! Memory use of the commands: each runs under a limit (`ulimit -d`) and fails if it exceeds it.

use std::process::Command;

use rxo_testkit::seg;

use crate::world::{Folder, pcap};

/// Runs the command with at most `megabytes` of private memory.
fn within(folder: &Folder, megabytes: u32, line: &str) -> String {
    let script =
        format!("ulimit -d {}; exec '{}' {line}", megabytes << 10, env!("CARGO_BIN_EXE_rxo"));
    let output =
        Command::new("bash").args(["-c", &script]).current_dir(&folder.0).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line} with {megabytes} MB: {} {said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_flow_that_is_compared_takes_a_hundred_bytes() {
    let folder = Folder::new("flows");
    let flows = 200_000_u32;
    let packets: Vec<_> = (0..flows).map(|flow| seg().flow(flow).len(1)).collect();
    folder.write("in.pcap", &pcap(&packets));
    drop(packets);
    // 20 MB of flows and the structures that grow with them; the rest is the base use of every command.
    let text = within(&folder, 60, "verify in.pcap in.pcap --json");
    assert!(text.contains("\"flows\": 200000"), "{text}");
}
