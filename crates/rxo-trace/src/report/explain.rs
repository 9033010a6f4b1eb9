//! Explains each reason, and what would change it.
//!
//! The names are the engine's; a test compares this list with all of them.

/// Packets of an unknown link type.
pub const UNKNOWN_LINK: &str = "unknown_link_type";
/// Packets of interfaces that had no engine for lack of memory.
pub const UNSERVED: &str = "interface_unserved";

/// Explains a reason in a sentence, and says what would change it, if anything can.
#[must_use]
pub fn reason(name: &str) -> (&'static str, Option<&'static str>) {
    REASONS
        .iter()
        .find(|(known, ..)| *known == name)
        .map_or(("a reason of a newer engine", None), |(_, meaning, remedy)| {
            (*meaning, (!remedy.is_empty()).then_some(*remedy))
        })
}

/// Name, meaning, remedy. An empty remedy means that there is none.
const REASONS: &[(&str, &str, &str)] = &[
    ("coalescing_off", "the policy coalesces nothing", "--policy linux-gro"),
    ("not_ip", "neither IPv4 nor IPv6, such as ARP", ""),
    (
        "truncated",
        "the packet ends before its headers or its length say",
        "capture whole packets (tcpdump -s 0), or --checksum trust for what the capture cut",
    ),
    (
        "malformed",
        "a length or version field is invalid; 0 if the sender's card was to segment the packet",
        "capture with tso off (ethtool -K IF tso off), or on the other machine",
    ),
    (
        "fragment",
        "an IP fragment: its ports cannot be relied on",
        "a smaller MTU or MSS at the sender",
    ),
    ("not_tcp", "IP, but not TCP", ""),
    (
        "unknown_header",
        "a header that is not read, such as ESP or mobility: TCP may stand behind it",
        "",
    ),
    ("ip_options", "IP options or IPv6 extension headers", "--set extension_headers=yes for IPv6"),
    (
        "extension_header",
        "an IPv6 extension header behind which nothing is merged: routing, authentication, a Home Address",
        "",
    ),
    ("reserved_bit", "the reserved bit of IPv4 is set", ""),
    ("bad_ip_checksum", "the IPv4 header checksum is wrong", ""),
    (
        "bad_tcp_checksum",
        "the TCP checksum is wrong",
        "--checksum partial when the sender's card was to fill it in, else --checksum trust",
    ),
    ("syn", "a connection begins", ""),
    ("rst", "a connection is cut off", ""),
    ("fin", "a connection ends", "--set fin=close appends a FIN with payload"),
    ("urg", "urgent data", ""),
    ("cwr", "a congestion signal that must not be lost or spread", ""),
    ("odd_flags", "no ACK flag, or a reserved bit", ""),
    ("ece", "ECE, where the policy takes no flags but ACK and PSH", "--set ece=equal"),
    ("pure_ack", "an acknowledgement without payload", "--set pure_acks=single"),
    ("duplicate_ack", "a pure ACK that repeats the one before: a sign of loss", ""),
    ("old_ack", "a pure ACK that acknowledges less than the one before", ""),
    ("first_ack", "the first pure ACK of a flow, or the first after data", ""),
    (
        "sack",
        "a pure ACK that reports which segments came out of order",
        "--set sack_superset=yes lets a newer report stand for an older that it covers",
    ),
    (
        "ce_mark",
        "marked CE: the host is to count each mark (RFC 9768)",
        "--set ce=equal merges them, and the host counts one mark for each aggregate",
    ),
    ("df_clear", "DF is clear, where the policy wants it set", "--set needs_df=no"),
    ("zero_echo", "a timestamp that echoes zero", "--set zero_echo=yes"),
    (
        "tcp_options",
        "options other than the timestamp, such as SACK blocks",
        "--set options=identical appends where they are equal",
    ),
    ("already_aggregated", "several segments in one when it came", "capture with gro and tso off"),
    ("psh_alone", "PSH with nothing held before it", "--set psh=close holds it, psh=keep goes on"),
    (
        "too_large",
        "alone more than the policy's bytes",
        "--set max_bytes=65535, or a larger buffer_bytes",
    ),
    (UNKNOWN_LINK, "its link type is not known, so no IP packet is found in it", ""),
    (
        UNSERVED,
        "its interface is one too many for the memory there is",
        "split the capture by interface, or sweep fewer values",
    ),
    (
        "end_of_poll",
        "the poll was over and the policy holds nothing beyond it",
        "longer polls (rx-usecs; --poll time:100us shows it), or --hold 50us",
    ),
    (
        "lone_segment",
        "it was all that its flow held when a poll ended: alone it gains nothing by waiting",
        "longer polls",
    ),
    ("poll_limit", "the policy's number of polls was over", "--hold polls:N with a larger N"),
    ("ack_limit", "as many pure ACKs as the policy allows", "--set keep_every=N, max_acks=N"),
    ("ack_repeated", "the next pure ACK said the same again", ""),
    ("packet_limit", "the interrupt window was over", "--hold packets:N with a larger N"),
    ("timeout", "held as long as the policy allows", "a longer --hold, or --set max_hold=2ms"),
    (
        "segment_limit",
        "as many segments as the policy allows",
        "--set max_segments=N with a larger N",
    ),
    (
        "byte_limit",
        "one more payload would have been more than the policy's bytes",
        "--set buffer_bytes=N or max_bytes=65535",
    ),
    (
        "psh",
        "a segment with PSH: the sender had nothing more to send",
        "--set psh=keep goes on, and what the application waits for comes later",
    ),
    ("fin", "a segment with FIN", ""),
    (
        "short_segment",
        "a segment shorter than the first: the end of what was sent at once",
        "--set payload=any, if the receiver takes it",
    ),
    (
        "long_segment",
        "the next segment was longer than the first",
        "--set payload=any, if the receiver takes it",
    ),
    (
        "out_of_sequence",
        "the next segment did not continue the byte stream: lost, reordered or sent again",
        "nothing here; look for loss and reordering on the path",
    ),
    (
        "ack_changed",
        "the acknowledgement number changed: data went both ways",
        "--set ack=not-decreasing, or --policy remember",
    ),
    ("window_changed", "the window changed", "--set window=latest, or --policy remember"),
    (
        "options_changed",
        "the options changed, mostly the timestamp's value",
        "--set options=timestamp-not-decreasing, or --policy remember",
    ),
    ("timestamp_decreased", "the timestamp went back", "--set options=timestamp"),
    ("flags_changed", "a congestion flag changed", ""),
    ("traffic_class_changed", "the TOS or traffic class byte changed, ECN marks among it", ""),
    ("hop_limit_changed", "TTL or hop limit changed: another path", ""),
    ("ip_id", "the IPv4 ID neither stayed nor counted on", ""),
    ("df_changed", "the DF bit changed", ""),
    ("flow_label_changed", "the IPv6 flow label changed", ""),
    ("link_changed", "the link-layer header or an extension header changed", ""),
    ("checksum_status_changed", "one checksum was complete, the other only begun", ""),
    ("order", "something of the same flow had to be delivered after it, such as a pure ACK", ""),
    (
        "evicted",
        "all places were taken and this flow was used least recently",
        "--set flows=N with a larger N",
    ),
    ("memory", "all frame slots were taken", "shorter polls, or a shorter --hold"),
    ("shutdown", "the capture was over", ""),
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
