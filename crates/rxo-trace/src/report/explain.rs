//! Explains each reason for a bypass or a flush, and names a change that would remove it.
//!
//! The names are the engine's; a test checks that this list contains all of them.

/// The name of the reason for packets of an unknown link type.
pub const UNKNOWN_LINK: &str = "unknown_link_type";
/// The name of the reason for packets of interfaces for whose engines there was not enough memory.
pub const UNSERVED: &str = "interface_unserved";

/// Returns the meaning of a reason as a sentence, and the remedy, if there is one.
///
/// # Examples
/// ```
/// use rxo_trace::report::explain;
///
/// let (meaning, remedy) = explain::reason("coalescing_off");
/// assert_eq!(meaning, "the policy coalesces nothing");
/// assert_eq!(remedy, Some("--policy linux-gro"));
/// ```
#[must_use]
pub fn reason(name: &str) -> (&'static str, Option<&'static str>) {
    REASONS
        .iter()
        .find(|(known, ..)| *known == name)
        .map_or(("a reason of a newer engine", None), |(_, meaning, remedy)| {
            (*meaning, (!remedy.is_empty()).then_some(*remedy))
        })
}

/// For each reason its name, its meaning and its remedy. An empty remedy means that there is none.
const REASONS: &[(&str, &str, &str)] = &[
    ("coalescing_off", "the policy coalesces nothing", "--policy linux-gro"),
    ("not_ip", "neither IPv4 nor IPv6, such as ARP", ""),
    (
        "truncated",
        "the packet is shorter than its headers or its length say",
        "capture whole packets (tcpdump -s 0), or --checksum trust for packets that the capture truncated",
    ),
    (
        "malformed",
        "a length or version field is invalid; 0 if the sender's card was to segment the packet",
        "capture with tso off (ethtool -K IF tso off), or on the other machine",
    ),
    ("fragment", "an IP fragment: its ports are unknown", "a smaller MTU or MSS at the sender"),
    ("not_tcp", "IP, but neither TCP nor UDP that is coalesced", "--set udp=equal for UDP"),
    (
        "udp_tunnel",
        "UDP to the port of a tunnel: GTP-U, IPsec and others, or a packet of VXLAN or Geneve that cannot be looked into",
        "--set tunnels=on for TCP inside VXLAN and Geneve",
    ),
    (
        "checksum_elsewhere",
        "a checksum is to be completed that is not the packet's own, but that of a packet inside",
        "",
    ),
    ("udp_length", "UDP without payload, or with another length than the packet has room for", ""),
    (
        "udp_checksum_zero",
        "UDP without a checksum: segmentation would give it one",
        "checksums at the sender",
    ),
    ("bad_udp_checksum", "the UDP checksum is wrong", "--checksum partial or trust, as for TCP"),
    (
        "unknown_header",
        "a header that rxo does not read, such as ESP or mobility: TCP may follow it",
        "",
    ),
    ("ip_options", "IP options or IPv6 extension headers", "--set extension_headers=yes for IPv6"),
    (
        "extension_header",
        "an IPv6 extension header that prevents merging: routing, authentication, a Home Address",
        "",
    ),
    ("reserved_bit", "the reserved bit of IPv4 is set", ""),
    ("bad_ip_checksum", "the IPv4 header checksum is wrong", ""),
    (
        "bad_tcp_checksum",
        "the TCP checksum is wrong",
        "--checksum partial if the sender's card was to complete it, else --checksum trust",
    ),
    ("syn", "a connection begins", ""),
    ("rst", "a connection is reset", ""),
    ("fin", "a connection ends", "--set fin=close appends a FIN with payload"),
    ("urg", "urgent data", ""),
    ("cwr", "a congestion signal that must be neither lost nor repeated", ""),
    ("odd_flags", "no ACK flag, or a reserved bit", ""),
    ("ece", "ECE, and the policy accepts no flags but ACK and PSH", "--set ece=equal"),
    ("pure_ack", "an acknowledgement without payload", "--set pure_acks=single"),
    ("duplicate_ack", "a pure ACK that repeats the one before: a sign of loss", ""),
    ("old_ack", "a pure ACK that acknowledges less than the one before", ""),
    ("first_ack", "the first pure ACK of a flow, or the first after data", ""),
    (
        "sack",
        "a pure ACK that reports segments received out of order",
        "--set sack_superset=yes drops an older report that a newer one covers",
    ),
    (
        "ce_mark",
        "marked CE: the host must count each mark (RFC 9768)",
        "--set ce=equal merges them, and the host counts one mark for each aggregate",
    ),
    ("df_clear", "DF is clear, and the policy requires it", "--set needs_df=no"),
    ("zero_echo", "a timestamp that echoes zero", "--set zero_echo=yes"),
    (
        "tcp_options",
        "options other than the timestamp, such as SACK blocks",
        "--set options=identical appends if they are equal",
    ),
    (
        "already_aggregated",
        "a GSO frame: merged before the capture",
        "capture with gro and tso off",
    ),
    (
        "psh_alone",
        "PSH with nothing held before it",
        "--set psh=close holds it, psh=keep also continues after it",
    ),
    (
        "too_large",
        "larger than the policy's most bytes",
        "--set max_bytes=65535, or a larger buffer_bytes",
    ),
    (UNKNOWN_LINK, "its link type is unknown, so its IP packet cannot be found", ""),
    (
        UNSERVED,
        "there was no memory for an engine on its interface",
        "split the capture by interface, or sweep fewer values",
    ),
    (
        "end_of_poll",
        "the poll ended, and the policy holds nothing beyond it",
        "longer polls (rx-usecs; --poll time:100us shows it), or --hold 50us",
    ),
    (
        "lone_segment",
        "a single segment at the end of a poll: waiting longer gains nothing",
        "longer polls",
    ),
    (
        "poll_limit",
        "it was held for the policy's number of polls",
        "--hold polls:N with a larger N",
    ),
    (
        "receiver_idle",
        "the receiver had taken everything: adaptive hold holds nothing then",
        "--hold with a time or polls:N, at the price of latency",
    ),
    ("enough_segments", "20 segments: adaptive hold waits for no more", "longer polls"),
    (
        "hold_budget",
        "the next poll would have come after the budget of adaptive hold",
        "--hold auto:TIME with a longer TIME",
    ),
    (
        "little_gain",
        "adaptive hold expected less than one more segment from the next poll",
        "longer polls",
    ),
    ("ack_limit", "as many pure ACKs as the policy allows", "--set keep_every=N, max_acks=N"),
    ("ack_repeated", "the next pure ACK repeated it", ""),
    ("packet_limit", "the interrupt window ended", "--hold packets:N with a larger N"),
    ("timeout", "held as long as the policy allows", "a longer --hold, or --set max_hold=2ms"),
    (
        "segment_limit",
        "as many segments as the policy allows",
        "--set max_segments=N with a larger N",
    ),
    (
        "byte_limit",
        "the next payload would have exceeded the policy's most bytes",
        "--set buffer_bytes=N or max_bytes=65535",
    ),
    (
        "psh",
        "a segment with PSH: the sender had nothing more to send",
        "--set psh=keep continues, but delays data that the application waits for",
    ),
    ("fin", "a segment with FIN", ""),
    (
        "short_segment",
        "a segment shorter than the first: the end of a burst",
        "--set payload=any, if the receiver accepts it",
    ),
    (
        "long_segment",
        "the next segment was longer than the first",
        "--set payload=any, if the receiver accepts it",
    ),
    (
        "out_of_sequence",
        "the next segment did not continue the byte stream: loss, reordering or a retransmission",
        "no setting; look for loss and reordering on the path",
    ),
    (
        "ack_changed",
        "the acknowledgement number changed: data flows both ways",
        "--set ack=not-decreasing, or --policy remember",
    ),
    ("window_changed", "the window changed", "--set window=latest, or --policy remember"),
    (
        "options_changed",
        "the options changed, usually the timestamp",
        "--set options=timestamp-not-decreasing, or --policy remember",
    ),
    ("timestamp_decreased", "the timestamp went back", "--set options=timestamp"),
    ("flags_changed", "a congestion flag changed", ""),
    (
        "traffic_class_changed",
        "the TOS or traffic class byte changed, which includes ECN marks",
        "",
    ),
    ("hop_limit_changed", "TTL or hop limit changed: another path", ""),
    ("ip_id", "the IPv4 ID neither stayed equal nor counted up", "--set ip_id=any"),
    ("df_changed", "the DF bit changed", ""),
    ("flow_label_changed", "the IPv6 flow label changed", ""),
    (
        "link_changed",
        "the link-layer header, an extension header or a header of a tunnel changed",
        "",
    ),
    ("checksum_status_changed", "one checksum was complete, the other partial", ""),
    ("order", "another packet of the flow had to follow it, such as a pure ACK", ""),
    (
        "evicted",
        "the flow table was full, and this flow was used least recently",
        "--set flows=N with a larger N",
    ),
    (
        "collision",
        "too many flows had hashes like its own, which one who knows the seed can arrange",
        "",
    ),
    ("memory", "all frame slots were in use", "shorter polls, or a shorter --hold"),
    ("policy_change", "the policy was changed while packets were held", ""),
    ("shutdown", "the capture ended", ""),
];

#[cfg(test)]
mod tests {
    use rxo_coalesce::{BypassReason, FlushReason};

    use super::*;

    #[test]
    fn every_reason_of_the_engine_is_explained() {
        let bypasses = BypassReason::ALL.iter().map(|reason| reason.name());
        let flushes = FlushReason::ALL.iter().map(|reason| reason.name());
        for name in bypasses.chain(flushes) {
            assert!(REASONS.iter().any(|(known, ..)| *known == name), "{name} is not explained");
        }
    }

    #[test]
    fn what_a_remedy_sets_is_a_setting() {
        for (name, _, remedy) in REASONS {
            for setting in remedy.split("--set ").skip(1) {
                let setting = setting.split([' ', ',']).next().unwrap_or_default();
                let (key, value) = setting.split_once('=').unwrap();
                let value = if value == "N" { "1000" } else { value };
                let mut policy = rxo_coalesce::Policy::linux_gro();
                assert!(policy.set(key, value).is_ok(), "{name}: --set {setting}");
            }
        }
    }
}
