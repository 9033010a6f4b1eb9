//! What the engine's reasons mean, in the words of a reader who does not know the engine.

/// What a bypass or flush reason means; empty for a name that is none.
#[must_use]
pub fn meaning(name: &str) -> &'static str {
    let mut all = BYPASSES.iter().chain(FLUSHES);
    all.find(|(reason, _)| *reason == name).map_or("", |(_, text)| text)
}

const BYPASSES: &[(&str, &str)] = &[
    ("coalescing_off", "the policy coalesces nothing"),
    ("not_ip", "neither IPv4 nor IPv6, such as ARP"),
    ("truncated", "the frame ends before its headers or its packet do"),
    ("malformed", "a length or version field cannot be true"),
    ("fragment", "a fragment of an IP packet"),
    ("not_tcp", "IP, but not TCP"),
    ("ip_options", "has IP options or extension headers that the policy does not take"),
    ("reserved_bit", "the reserved bit of the IPv4 header is set"),
    ("bad_ip_checksum", "the IPv4 header checksum is wrong"),
    ("bad_tcp_checksum", "the TCP checksum is wrong"),
    ("syn", "opens a connection"),
    ("rst", "resets a connection"),
    ("fin", "closes a connection, and the policy does not append that"),
    ("urg", "carries urgent data"),
    ("cwr", "answers a congestion signal (CWR), which must stay countable"),
    ("odd_flags", "has no ACK flag, or a reserved TCP bit"),
    ("pure_ack", "an acknowledgement without data; only some policies aggregate these"),
    ("tcp_options", "has TCP options that the policy does not take, such as SACK"),
    ("already_aggregated", "was several segments in one before it was captured"),
    ("psh_alone", "ends a message (PSH) with nothing held before it"),
    ("too_large", "alone larger than an aggregate may be"),
];

const FLUSHES: &[(&str, &str)] = &[
    ("end_of_poll", "the poll ended; longer polls or holds would join more"),
    ("poll_limit", "held for as many polls as the policy allows"),
    ("packet_limit", "the interrupt window of so many packets was over"),
    ("timeout", "held as long as the policy allows"),
    ("segment_limit", "as many segments as the policy allows"),
    ("byte_limit", "one payload more would exceed the policy's bytes"),
    ("psh", "the sender ended a message (PSH)"),
    ("fin", "the sender closed the connection"),
    ("short_segment", "a segment shorter than the first ended it"),
    ("long_segment", "the next segment was longer than the first"),
    ("out_of_sequence", "the next segment did not continue the bytes: lost, reordered or repeated"),
    ("ack_changed", "the next segment acknowledged something else than the policy joins"),
    ("window_changed", "the next segment had another window"),
    ("options_changed", "the next segment had other TCP options"),
    ("timestamp_decreased", "the next segment's timestamp went back"),
    ("flags_changed", "a congestion flag (ECE or AE) changed"),
    ("traffic_class_changed", "the next packet had another traffic class or congestion mark (ECN)"),
    ("hop_limit_changed", "the next packet had another TTL: it came another way"),
    ("ip_id", "the IPv4 ID neither stayed nor counted on"),
    ("df_changed", "the don't-fragment bit changed"),
    ("flow_label_changed", "the IPv6 flow label changed"),
    ("link_changed", "addresses, VLAN priority or an extension header changed"),
    ("checksum_status_changed", "one checksum is complete, the other was left to the card"),
    ("order", "another packet of the flow or its addresses had to be delivered after it"),
    ("evicted", "more flows at once than the policy holds; the least recently used had to go"),
    ("memory", "all frame slots were in use; the least recently used had to go"),
    ("shutdown", "the captures ended"),
];

#[cfg(test)]
mod tests {
    use rxo_coalesce::{BypassReason, FlushReason};

    use super::*;

    #[test]
    fn every_reason_has_a_meaning() {
        let bypasses = BypassReason::ALL.iter().map(|reason| reason.name());
        let flushes = FlushReason::ALL.iter().map(|reason| reason.name());
        for name in bypasses.chain(flushes) {
            assert!(!meaning(name).is_empty(), "{name}");
        }
        assert_eq!(BYPASSES.len() + FLUSHES.len(), BypassReason::COUNT + FlushReason::COUNT);
        assert_eq!(meaning("no_such_reason"), "");
    }
}
