//! `--flow` accepts the packets that the same filter of tshark's language accepts.

use std::path::Path;
use std::process::Command;

use rxo_testkit::seg;

use super::world::{Folder, mixed, pcap, pcap_of, several_interfaces, shared_captures};

/// Filters of tcpdump, and the same in tshark's language.
const ROWS: [(&str, &str); 9] = [
    ("tcp", "tcp"),
    ("ip6 and tcp", "ipv6 && tcp"),
    (
        "src port 443 or dst port 80",
        "tcp.srcport==443 || udp.srcport==443 || tcp.dstport==80 || udp.dstport==80",
    ),
    (
        "net 10.0.0.0/24",
        "ip.addr==10.0.0.0/24 || arp.src.proto_ipv4==10.0.0.0/24 || arp.dst.proto_ipv4==10.0.0.0/24",
    ),
    ("tcp[tcpflags] & tcp-push != 0", "ip && tcp.flags.push==1"),
    ("greater 1000", "frame.len>=1000"),
    ("udp or arp", "udp || arp"),
    ("not (tcp and less 200)", "!(tcp && frame.len<=200)"),
    ("ip[8] > 60", "ip.ttl>60"),
];
/// Packets in which both languages see the same: without tags, and without packets inside others.
const PLAIN: &str = "!vlan && !icmp && !icmpv6 && !(ip.frag_offset > 0)";

pub(crate) fn accepts_what_tshark_does() {
    let folder = Folder::new("tshark-filter");
    let made = folder.write("mixed.pcap", &pcap(&mixed(5, 60)));
    let several = folder.write("several.pcapng", &several_interfaces());
    let mut accepted = 0;
    for capture in shared_captures().iter().chain([&made, &several]) {
        let plain = folder.0.join("plain.pcapng");
        // Of a capture that is cut short it writes what there is, and fails.
        let mut command = Command::new("tshark");
        command.args(["-Y", PLAIN, "-w"]).arg(&plain).arg("-r").arg(capture).output().unwrap();
        for (filter, display) in ROWS {
            let ours = counted(&folder, &plain, filter);
            assert_eq!(ours, listed(&plain, display), "{filter}: {}", capture.display());
            accepted += ours;
        }
    }
    assert!(accepted > 1_000, "{accepted}");
    let tagged = counted(&folder, &made, "vlan and tcp");
    assert_eq!(tagged, listed(&made, "vlan && tcp && !(ip.frag_offset > 0)"));
    assert!(tagged > 0);
}

pub(crate) fn is_refused_in_one_line() {
    let folder = Folder::new("tshark-filters");
    let several = folder.write("several.pcapng", &several_interfaces());
    let analyze = |filter: &str| {
        let output = folder.command("analyze several.pcapng --flow").arg(filter).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = analyze("port seventy");
    assert!(code == Some(2) && said.lines().count() == 1, "{said}");
    assert!(
        said.contains("--flow \"port seventy\": ") && said.contains("man pcap-filter"),
        "{said}"
    );
    // Only one of the capture's link types has a direction.
    let (code, said) = analyze("inbound");
    assert!(code == Some(3) && said.lines().count() == 1, "{said}");
    assert!(said.contains("in packets of link type 1"), "{said}");
    // What the report advises is a filter, for both versions of IP.
    for filter in ["dst 10.0.0.2", "dst 2001:db8::1"] {
        assert_eq!(analyze(filter).0, Some(0), "{filter}");
    }
    // No packet without an Ethernet header can be ARP, which is an answer and no error.
    assert_eq!(analyze("arp").0, Some(0));
    assert!(several.exists());
}

/// The numbers of address families differ between systems, and a capture keeps those of the one that wrote it.
pub(crate) fn accepts_ipv6_of_any_bsd() {
    let folder = Folder::new("tshark-families");
    let families = [[24, 0, 0, 0], [30, 0, 0, 0], [0, 0, 0, 28]];
    let packet = seg().v6().len(100).raw_ip().bytes();
    let mut bytes = pcap_of(families.map(|family| [&family[..], &packet].concat()));
    bytes[20] = 0;
    let capture = folder.write("lo0.pcap", &bytes);
    assert_eq!(counted(&folder, &capture, "ip6 and tcp"), 3);
    assert_eq!(counted(&folder, &capture, "udp"), 0);
}

/// Returns the number of packets that `rxo analyze` counts with a filter.
fn counted(folder: &Folder, capture: &Path, filter: &str) -> u64 {
    let line = format!("analyze {} --json --no-advice --flow", capture.display());
    let output = folder.command(&line).arg(filter).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&said);
    assert_eq!(report["filter"], filter);
    // Sent packets are left out before the filter sees them.
    assert_eq!(report["traffic"]["sent_packets"], 0);
    report["traffic"]["packets"].as_u64().unwrap()
}

/// Returns the number of packets that tshark lists with a filter of its language.
fn listed(capture: &Path, filter: &str) -> u64 {
    let mut command = Command::new("tshark");
    command.args(["-o", "ip.defragment:FALSE", "-Y", filter, "-T", "fields", "-e", "frame.number"]);
    run(command.arg("-r").arg(capture)).lines().count() as u64
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
