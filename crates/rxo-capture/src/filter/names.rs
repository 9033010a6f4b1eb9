//! Names of hosts and networks in a filter. libpcap looks them up on the machine that compiles the filter, so that machines
//! which share a study might filter by different addresses.

use core::net::IpAddr;

/// Returns the first word of the filter `text` that is neither a word of the language, nor a number or an address, nor the
/// name of a port or a protocol; `None` if there is none. A word that libpcap knows and this list does not is returned as well.
pub(super) fn first_host_name(text: &str) -> Option<&str> {
    let is_separator = |c: char| !(c.is_ascii_alphanumeric() || "-_.:\\".contains(c));
    let mut is_host = true;
    text.split(is_separator).filter(|word| !word.is_empty()).find(|word| {
        if OTHERS.contains(word) {
            is_host = false;
        } else if WORDS.contains(word) {
            // A name stands for what the last of these words says; `and` and `or` do not change it.
            is_host |= HOSTS.contains(word);
        } else {
            return is_host && !is_constant(word) && !is_address(word);
        }
        false
    })
}

/// Returns `true` for numbers, and for addresses of IP and of Ethernet.
fn is_address(word: &str) -> bool {
    let is_number = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    let hex = word.strip_prefix("0x").unwrap_or(word);
    let is_hex = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit());
    let parts: Vec<&str> = word.split([':', '-', '.']).collect();
    let groups = |count, digits: core::ops::RangeInclusive<usize>| {
        parts.len() == count
            && parts.iter().all(|part| is_hex(part) && digits.contains(&part.len()))
    };
    let is_mac = groups(6, 1..=2) || groups(3, 4..=4);
    // An index and a length in a header have a colon.
    let has_colon = word.contains(':') && parts.iter().all(|part| part.is_empty() || is_hex(part));
    word.chars().all(is_number)
        || hex.len() < word.len() && is_hex(hex)
        || word.parse::<IpAddr>().is_ok()
        || is_mac
        || has_colon
}

/// Returns `true` for the named values of fields, such as `tcp-syn`.
fn is_constant(word: &str) -> bool {
    CONSTANTS.contains(&word)
}

/// The named values of fields (pcap-filter(7)).
const CONSTANTS: [&str; 33] = [
    "icmp-echoreply",
    "icmp-unreach",
    "icmp-sourcequench",
    "icmp-redirect",
    "icmp-echo",
    "icmp-routeradvert",
    "icmp-routersolicit",
    "icmp-timxceed",
    "icmp-paramprob",
    "icmp-tstamp",
    "icmp-tstampreply",
    "icmp-ireq",
    "icmp-ireqreply",
    "icmp-maskreq",
    "icmp-maskreply",
    "icmp6-destinationunreach",
    "icmp6-packettoobig",
    "icmp6-timeexceeded",
    "icmp6-parameterproblem",
    "icmp6-echo",
    "icmp6-echoreply",
    "icmp6-routersolicit",
    "icmp6-routeradvert",
    "icmp6-neighborsolicit",
    "icmp6-neighboradvert",
    "tcp-fin",
    "tcp-syn",
    "tcp-rst",
    "tcp-push",
    "tcp-ack",
    "tcp-urg",
    "tcp-ece",
    "tcp-cwr",
];
/// Words before names of something other than a host.
const OTHERS: [&str; 15] = [
    "port",
    "portrange",
    "proto",
    "protochain",
    "type",
    "subtype",
    "dir",
    "direction",
    "ifname",
    "on",
    "ruleset",
    "rset",
    "reason",
    "action",
    "llc",
];
/// Words before names of hosts and networks.
const HOSTS: [&str; 9] =
    ["host", "net", "mask", "gateway", "src", "dst", "ether", "broadcast", "multicast"];
/// The other words of the language (pcap-filter(7)).
const WORDS: [&str; 88] = [
    "host",
    "net",
    "mask",
    "gateway",
    "src",
    "dst",
    "ether",
    "broadcast",
    "multicast",
    "link",
    "ppp",
    "slip",
    "fddi",
    "tr",
    "wlan",
    "arp",
    "rarp",
    "ip",
    "sctp",
    "tcp",
    "udp",
    "icmp",
    "igmp",
    "igrp",
    "pim",
    "vrrp",
    "carp",
    "radio",
    "ip6",
    "icmp6",
    "ah",
    "esp",
    "atalk",
    "aarp",
    "decnet",
    "lat",
    "sca",
    "moprc",
    "mopdl",
    "iso",
    "es-is",
    "esis",
    "isis",
    "is-is",
    "l1",
    "l2",
    "iih",
    "lsp",
    "snp",
    "csnp",
    "psnp",
    "clnp",
    "stp",
    "ipx",
    "netbeui",
    "addr1",
    "addr2",
    "addr3",
    "addr4",
    "address1",
    "address2",
    "address3",
    "address4",
    "ra",
    "ta",
    "less",
    "greater",
    "byte",
    "and",
    "or",
    "not",
    "len",
    "length",
    "inbound",
    "outbound",
    "ifindex",
    "vlan",
    "mpls",
    "pppoed",
    "pppoes",
    "geneve",
    "vxlan",
    "icmptype",
    "icmpcode",
    "icmp6type",
    "icmp6code",
    "tcpflags",
    "vpi",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_are_found_and_nothing_else() {
        let rows = [
            ("dst fileserver", Some("fileserver")),
            ("host 10.0.0.1 or files.example.org", Some("files.example.org")),
            ("not net office and port 445", Some("office")),
            ("port http and dst host 3com.com", Some("3com.com")),
            ("(src cafe)", Some("cafe")),
            ("ether host gate", Some("gate")),
            ("dst tcp-proxy", Some("tcp-proxy")),
            ("host icmp-gw.example.org", Some("icmp-gw.example.org")),
            ("host ab.cd.ef", Some("ab.cd.ef")),
            ("", None),
            ("tcp port http or https", None),
            ("dst 10.0.0.1 and (port 445 or portrange 80-90)", None),
            ("net 10.0.0.0/8 or 192.168 or host fe80::1%1", None),
            ("ether src 00:11:22:33:44:55 or ether dst 0011.2233.4455", None),
            ("tcp[tcpflags] & (tcp-syn|tcp-fin) != 0 && ip[2:2] > 0x40", None),
            ("vlan and ip proto \\tcp and greater 1000", None),
            ("icmp[icmptype] = icmp-echo || ip6 protochain 6", None),
        ];
        for (text, name) in rows {
            assert_eq!(first_host_name(text), name, "{text}");
        }
    }
}
