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

/// Writes `in.pcap` with a packet of each of 200,000 flows.
fn with_many_flows(name: &str) -> Folder {
    let folder = Folder::new(name);
    let packets: Vec<_> = (0..200_000).map(|flow| seg().flow(flow).len(1)).collect();
    folder.write("in.pcap", &pcap(&packets));
    folder
}

#[test]
fn a_flow_that_is_studied_takes_two_hundred_bytes() {
    let folder = with_many_flows("studied");
    // 40 MB of flows; the rest is the base use of every command.
    let text = within(&folder, 60, "analyze in.pcap --json");
    assert!(text.contains("\"flows\": 200000"), "{text}");
}

#[test]
fn a_flow_that_is_compared_takes_a_hundred_bytes() {
    let folder = with_many_flows("flows");
    // 20 MB of flows and the structures that grow with them; the rest is the base use of every command.
    let text = within(&folder, 60, "verify in.pcap in.pcap --json");
    assert!(text.contains("\"flows\": 200000"), "{text}");
}
