//! The Lua dissector gives Wireshark and tshark fields for the aggregates of a coalesced capture.

use std::path::Path;
use std::process::Command;

use super::world::{Folder, mixed, pcap};

/// The aggregates that tshark finds by the fields of the dissector are those that `rxo coalesce` counts.
pub(crate) fn names_the_aggregates() {
    let folder = Folder::new("tshark-dissector");
    folder.write("in.pcap", &pcap(&mixed(11, 60)));
    let line = "coalesce in.pcap out.pcapng --policy remember --json";
    let output = folder.command(line).output().unwrap();
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |name: &str| said[name].as_u64().unwrap();

    let aggregates = aggregates(&folder.0.join("out.pcapng"));
    assert!(aggregates.len() > 1, "{aggregates:?}");
    assert_eq!(aggregates.len() as u64, count("aggregates"));
    assert_eq!(aggregates.iter().sum::<u64>(), count("aggregated_packets"));
}

/// Returns the numbers of segments that tshark finds by the dissector's fields.
fn aggregates(capture: &Path) -> Vec<u64> {
    let script =
        concat!("lua_script:", env!("CARGO_MANIFEST_DIR"), "/../../packaging/wireshark/rxo.lua");
    let mut command = Command::new("tshark");
    command.args(["-X", script, "-T", "fields", "-Y", "rxo.payload_bytes > 0 && rxo.flushed"]);
    let output = command.args(["-e", "rxo.segments", "-r"]).arg(capture).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}
