//! Membership reports of a host, read by tshark.

use std::process::Command;

use rxo_frame::Instant;
use rxo_host::link::{Channel, Link, LinkConfig};

use crate::world::{Folder, pcap_of};

/// Joins and leaves an IPv4 and an IPv6 channel; tshark must parse the records, with correct checksums.
pub(crate) fn are_read() {
    let addresses = ["10.0.0.2/24", "fd00::2/64"].map(|text| text.parse().unwrap());
    let config = LinkConfig::ethernet([2, 0, 0, 0, 0, 2], addresses.to_vec());
    let mut link = Link::new(config).unwrap();
    let now = Instant::from_micros(1);
    let rows = [("10.0.0.9", "232.1.1.1"), ("fd00::9", "ff3e::8000:1")];
    for (source, group) in rows {
        let channel = Channel::new(source.parse().unwrap(), group.parse().unwrap()).unwrap();
        link.join(channel, now).unwrap();
        link.leave(channel, now);
    }
    let folder = Folder::new("tshark-memberships");
    folder.write("reports.pcap", &pcap_of(std::iter::from_fn(|| link.poll_transmit())));
    let mut command = Command::new("tshark");
    command.args(["-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=|"]);
    FIELDS.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.arg("-r").arg(folder.0.join("reports.pcap")).output().unwrap();
    let lines: Vec<String> =
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    let v4 = |kind| format!("1|1|{kind}|232.1.1.1|10.0.0.9||||||");
    let v6 = |kind| format!("|||||1|{kind}|ff3e::8000:1|fd00::9||");
    assert_eq!(lines, [v4(5), v4(6), v6(5), v6(6)]);
}

/// The fields that tshark prints: a correct checksum is 1; the last two fields are complaints.
const FIELDS: [&str; 11] = [
    "ip.checksum.status",
    "igmp.checksum.status",
    "igmp.record_type",
    "igmp.maddr",
    "igmp.saddr",
    "icmpv6.checksum.status",
    "icmpv6.mldr.mar.record_type",
    "icmpv6.mldr.mar.multicast_address",
    "icmpv6.mldr.mar.source_address",
    "_ws.malformed",
    "_ws.expert.message",
];
