//! Why a frame was not coalesced, and why an aggregate was delivered when it was.
//!
//! Every bypass and every flush has one of these; each is a counter with a stable name.

use rxo_frame::reasons;

reasons! {
    /// Why a frame was delivered untouched instead of being coalesced.
    BypassReason {
        /// The policy coalesces nothing.
        CoalescingOff => "coalescing_off",
        /// Neither IPv4 nor IPv6 (ARP and the like).
        NotIp => "not_ip",
        /// The frame ends before its headers or its packet do.
        Truncated => "truncated",
        /// A length or version field is invalid.
        Malformed => "malformed",
        /// A fragment of a packet.
        Fragment => "fragment",
        /// IP, but not TCP; where the policy coalesces UDP, not UDP either. Also of a packet inside a tunnel.
        NotTcp => "not_tcp",
        /// An unknown next header: a TCP segment may follow it.
        UnknownHeader => "unknown_header",
        /// IPv4 options, or IPv6 extension headers where the policy wants none.
        IpOptions => "ip_options",
        /// An IPv6 extension header that prevents merging: routing, authentication, or destination options with
        /// a Home Address.
        ExtensionHeader => "extension_header",
        /// The IPv4 reserved bit is set.
        ReservedBit => "reserved_bit",
        /// The IPv4 header checksum is wrong.
        BadIpChecksum => "bad_ip_checksum",
        /// The TCP checksum is wrong.
        BadTcpChecksum => "bad_tcp_checksum",
        /// SYN.
        Syn => "syn",
        /// RST.
        Rst => "rst",
        /// FIN, where the policy does not append it.
        Fin => "fin",
        /// URG, or an urgent pointer.
        Urg => "urg",
        /// CWR: merging would lose or spread a congestion signal.
        Cwr => "cwr",
        /// No ACK flag, or a reserved TCP bit.
        OddFlags => "odd_flags",
        /// ECE, where the policy wants no flags but ACK and PSH.
        Ece => "ece",
        /// An ACK without payload.
        PureAck => "pure_ack",
        /// A pure ACK that repeats the one before: it signals loss (RFC 5681 section 2).
        DuplicateAck => "duplicate_ack",
        /// A pure ACK whose number goes back.
        OldAck => "old_ack",
        /// A pure ACK of a flow about which nothing is known: it may be a duplicate.
        FirstAck => "first_ack",
        /// A pure ACK with SACK blocks.
        Sack => "sack",
        /// Marked CE, where the receiver must count each mark (RFC 9768 section 3.2.2).
        CeMark => "ce_mark",
        /// DF is clear, where the policy wants it set (IPv4).
        DfClear => "df_clear",
        /// Options other than the policy's.
        TcpOptions => "tcp_options",
        /// A timestamp that echoes zero, where the policy refuses that.
        ZeroEcho => "zero_echo",
        /// A GSO frame.
        AlreadyAggregated => "already_aggregated",
        /// A partial checksum that is not the packet's own, but that of a packet inside: completing it will change the
        /// payload.
        ChecksumElsewhere => "checksum_elsewhere",
        /// PSH with nothing held, where the policy lets such a segment bypass.
        PshAlone => "psh_alone",
        /// A UDP datagram to the port of a tunnel whose packets are not looked into, or one that cannot be: its header
        /// is odd, or what is inside is no IP packet.
        UdpTunnel => "udp_tunnel",
        /// A UDP datagram without payload, or with another length than its packet has room for.
        UdpLength => "udp_length",
        /// A UDP datagram without checksum: segmentation would give it one.
        UdpChecksumZero => "udp_checksum_zero",
        /// The UDP checksum is wrong.
        BadUdpChecksum => "bad_udp_checksum",
        /// The packet alone exceeds the policy's bytes.
        TooLarge => "too_large",
    }
}

/// What a packet that bypasses would overtake, unless it is flushed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Nothing: it belongs to no flow that is coalesced.
    Nothing,
    /// The segments of its flow.
    Flow,
    /// The segments of every flow between its addresses, because its ports are unknown or may be wrong.
    Addresses,
}

impl BypassReason {
    /// What a packet with this reason may overtake.
    pub(crate) const fn reach(self) -> Reach {
        match self {
            Self::NotIp | Self::NotTcp => Reach::Nothing,
            // Whatever damaged the packet may have changed its ports.
            Self::BadIpChecksum
            | Self::BadTcpChecksum
            | Self::BadUdpChecksum
            | Self::Truncated
            | Self::Malformed => Reach::Addresses,
            _ if self.may_hide_segment() => Reach::Addresses,
            _ => Reach::Flow,
        }
    }

    /// Whether the packet may be a segment of any flow between its addresses, or of two other hosts.
    pub(crate) const fn may_hide_segment(self) -> bool {
        matches!(self, Self::Fragment | Self::UnknownHeader | Self::ExtensionHeader)
    }
}

reasons! {
    /// Why what a flow held was delivered.
    FlushReason {
        /// The poll ended and the policy holds nothing beyond it.
        EndOfPoll => "end_of_poll",
        /// The poll ended and this segment was all that its flow held: a policy that counts polls holds no
        /// single segment.
        LoneSegment => "lone_segment",
        /// The policy's number of polls is over.
        PollLimit => "poll_limit",
        /// Adaptive hold: the receiver has taken everything it was given.
        ReceiverIdle => "receiver_idle",
        /// Adaptive hold: more segments would gain little.
        EnoughSegments => "enough_segments",
        /// Adaptive hold: the next poll is expected after the budget is spent.
        HoldBudget => "hold_budget",
        /// Adaptive hold: the next poll is expected to bring less than one segment of the flow.
        LittleGain => "little_gain",
        /// The policy's number of packets is over (an interrupt window).
        PacketLimit => "packet_limit",
        /// Held as long as the policy allows.
        Timeout => "timeout",
        /// As many segments as the policy allows.
        SegmentLimit => "segment_limit",
        /// As many pure ACKs as the policy allows.
        AckLimit => "ack_limit",
        /// One more payload would exceed the policy's bytes.
        ByteLimit => "byte_limit",
        /// A segment with PSH ended it.
        Psh => "psh",
        /// A segment with FIN ended it.
        Fin => "fin",
        /// A segment shorter than the first ended it.
        ShortSegment => "short_segment",
        /// The next segment is longer than the first.
        LongSegment => "long_segment",
        /// The next segment does not continue the byte stream.
        OutOfSequence => "out_of_sequence",
        /// The acknowledgement number differs, or went back.
        Ack => "ack_changed",
        /// The next pure ACK repeats the last.
        Repeated => "ack_repeated",
        /// The window differs.
        Window => "window_changed",
        /// The options differ.
        Options => "options_changed",
        /// The timestamp went back.
        Timestamp => "timestamp_decreased",
        /// ECE or AE differs.
        Flags => "flags_changed",
        /// The TOS or traffic class byte (ECN included) differs.
        TrafficClass => "traffic_class_changed",
        /// TTL or hop limit differs.
        HopLimit => "hop_limit_changed",
        /// The IPv4 ID neither stays nor counts as it did, inside a tunnel or outside.
        IpId => "ip_id",
        /// DF differs.
        DontFragment => "df_changed",
        /// The IPv6 flow label differs.
        FlowLabel => "flow_label_changed",
        /// The link-layer header (addresses, VLAN priority), an extension header or the headers of a tunnel differ.
        Link => "link_changed",
        /// One checksum is complete, the other only a seed.
        ChecksumStatus => "checksum_status_changed",
        /// A frame of the same flow, or of its addresses, had to be delivered after it.
        Order => "order",
        /// The table was full and this flow was the least recently used.
        Evicted => "evicted",
        /// Too many flows had hashes like its own, as one who knows the seed ([`Config::seed`](crate::Config::seed))
        /// can arrange: searches among them would have become long.
        Collision => "collision",
        /// All frame slots were in use and this flow was the least recently used.
        Memory => "memory",
        /// The policy changed: what was held under the old one was delivered first.
        PolicyChange => "policy_change",
        /// The caller asked for everything.
        Shutdown => "shutdown",
    }
}
