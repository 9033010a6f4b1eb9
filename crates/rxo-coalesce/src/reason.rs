//! Reasons for which a frame is not coalesced, and for which an aggregate is flushed.
//!
//! Every bypass and every flush has exactly one reason; each reason has a counter with a stable name.

use rxo_frame::reasons;

reasons! {
    /// The reason for which a frame was delivered untouched instead of being coalesced.
    BypassReason {
        /// The policy coalesces nothing.
        CoalescingOff => "coalescing_off",
        /// The frame contains neither IPv4 nor IPv6 (ARP and the like).
        NotIp => "not_ip",
        /// The frame is shorter than its headers or its packet.
        Truncated => "truncated",
        /// A length or version field of the packet is invalid.
        Malformed => "malformed",
        /// The packet is an IP fragment.
        Fragment => "fragment",
        /// The packet is IP, but of a protocol that the policy does not coalesce: neither TCP nor, if enabled,
        /// UDP. Also used for the packet inside a tunnel.
        NotTcp => "not_tcp",
        /// The packet has an unknown next header, after which a TCP segment may follow.
        UnknownHeader => "unknown_header",
        /// The packet has IPv4 options, or IPv6 extension headers that the policy does not merge.
        IpOptions => "ip_options",
        /// The packet has an IPv6 extension header that prevents merging: routing, authentication, or destination
        /// options with a Home Address.
        ExtensionHeader => "extension_header",
        /// The reserved bit of the IPv4 header is set.
        ReservedBit => "reserved_bit",
        /// The checksum of the IPv4 header is wrong.
        BadIpChecksum => "bad_ip_checksum",
        /// The checksum of the TCP segment is wrong.
        BadTcpChecksum => "bad_tcp_checksum",
        /// The SYN flag of the segment is set.
        Syn => "syn",
        /// The RST flag of the segment is set.
        Rst => "rst",
        /// The FIN flag is set, and the policy does not append such segments.
        Fin => "fin",
        /// The URG flag is set, or the urgent pointer is not zero.
        Urg => "urg",
        /// The CWR flag is set. Merging would lose this congestion signal, or apply the signal to other segments.
        Cwr => "cwr",
        /// The ACK flag is missing, or a reserved TCP flag is set.
        OddFlags => "odd_flags",
        /// The ECE flag is set, and the policy accepts no flags but ACK and PSH.
        Ece => "ece",
        /// The segment is an ACK without payload, and the policy does not aggregate ACKs.
        PureAck => "pure_ack",
        /// The segment is a pure ACK that repeats the previous ACK, which signals loss (RFC 5681 section 2).
        DuplicateAck => "duplicate_ack",
        /// The segment is a pure ACK with a lower number than the previous ACK.
        OldAck => "old_ack",
        /// The segment is a pure ACK of a flow without a recorded ACK, so it may be a duplicate.
        FirstAck => "first_ack",
        /// The segment is a pure ACK with SACK blocks that the policy does not aggregate.
        Sack => "sack",
        /// The packet is marked CE, and the receiver must count each mark (RFC 9768 section 3.2.2).
        CeMark => "ce_mark",
        /// The DF bit of the IPv4 packet is clear, and the policy requires it.
        DfClear => "df_clear",
        /// The segment has TCP options that the policy does not accept.
        TcpOptions => "tcp_options",
        /// The timestamp echo (TSecr) of the segment is zero, and the policy refuses such segments.
        ZeroEcho => "zero_echo",
        /// The frame is already a GSO frame.
        AlreadyAggregated => "already_aggregated",
        /// The frame's partial checksum belongs to an inner packet, so its completion will change the payload.
        ChecksumElsewhere => "checksum_elsewhere",
        /// The PSH flag is set and the flow holds nothing; under this policy such a segment bypasses.
        PshAlone => "psh_alone",
        /// The datagram is for the port of a tunnel that the engine does not parse; or the tunnel packet has an invalid
        /// or unsupported header, or no IP packet inside.
        UdpTunnel => "udp_tunnel",
        /// The UDP datagram has no payload, or a length that differs from its packet's.
        UdpLength => "udp_length",
        /// The UDP datagram has no checksum: segmentation would add one.
        UdpChecksumZero => "udp_checksum_zero",
        /// The checksum of the UDP datagram is wrong.
        BadUdpChecksum => "bad_udp_checksum",
        /// The packet alone exceeds the policy's limit of bytes.
        TooLarge => "too_large",
    }
}

/// The set of held segments that must be flushed before a bypassing packet, because the packet would otherwise
/// overtake them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// No held segments: the packet belongs to no flow that is coalesced.
    Nothing,
    /// The held segments of the packet's flow.
    Flow,
    /// The held segments of every flow between the packet's addresses. The packet's own flow is not certain: its ports
    /// are unknown or may be wrong.
    Addresses,
}

impl BypassReason {
    /// Returns the set of held segments that must be flushed before a packet that bypasses for this reason.
    pub(crate) const fn reach(self) -> Reach {
        match self {
            Self::NotIp | Self::NotTcp => Reach::Nothing,
            // Damage to the packet may have changed its ports.
            Self::BadIpChecksum
            | Self::BadTcpChecksum
            | Self::BadUdpChecksum
            | Self::Truncated
            | Self::Malformed => Reach::Addresses,
            _ if self.may_hide_segment() => Reach::Addresses,
            _ => Reach::Flow,
        }
    }

    /// Returns `true` if a packet that bypasses for this reason may contain a segment of any flow between its
    /// addresses, or of any flow inside a tunnel, whose hosts may be others.
    pub(crate) const fn may_hide_segment(self) -> bool {
        matches!(self, Self::Fragment | Self::UnknownHeader | Self::ExtensionHeader)
    }
}

reasons! {
    /// The reason for which the held segments of a flow were delivered.
    FlushReason {
        /// The poll ended and the policy holds nothing beyond it.
        EndOfPoll => "end_of_poll",
        /// The poll ended and the flow held only one segment. A policy that counts polls does not hold single
        /// segments beyond a poll.
        LoneSegment => "lone_segment",
        /// The flow was held for the maximum number of polls of the policy.
        PollLimit => "poll_limit",
        /// Adaptive hold: the receiver has processed all earlier deliveries.
        ReceiverIdle => "receiver_idle",
        /// Adaptive hold: the aggregate is so large that a larger one would save little.
        EnoughSegments => "enough_segments",
        /// Adaptive hold: the next poll is expected only after the flow's time budget.
        HoldBudget => "hold_budget",
        /// Adaptive hold: on average, the flow receives less than one segment per poll.
        LittleGain => "little_gain",
        /// As many packets have arrived since the last flush of all flows as the policy allows (an interrupt
        /// window).
        PacketLimit => "packet_limit",
        /// The flow was held for the maximum time of the policy.
        Timeout => "timeout",
        /// The aggregate has the maximum number of segments of the policy.
        SegmentLimit => "segment_limit",
        /// The flow holds the maximum number of pure ACKs of the policy.
        AckLimit => "ack_limit",
        /// One more segment would exceed the policy's limit of bytes.
        ByteLimit => "byte_limit",
        /// A segment with PSH ended the aggregate.
        Psh => "psh",
        /// A segment with FIN ended the aggregate.
        Fin => "fin",
        /// A segment that is shorter than the first ended the aggregate.
        ShortSegment => "short_segment",
        /// The next segment is longer than the first one of the aggregate.
        LongSegment => "long_segment",
        /// The next segment does not continue the byte stream of the aggregate.
        OutOfSequence => "out_of_sequence",
        /// The ACK number of the next segment changes in a way that the policy does not allow, or that of the
        /// next pure ACK decreases.
        Ack => "ack_changed",
        /// The next pure ACK repeats the last held one.
        Repeated => "ack_repeated",
        /// The window of the next segment differs from that of the aggregate.
        Window => "window_changed",
        /// The TCP options of the next segment differ from those of the aggregate.
        Options => "options_changed",
        /// The timestamp of the next segment decreases.
        Timestamp => "timestamp_decreased",
        /// The flag ECE or AE of the next segment differs from that of the aggregate.
        Flags => "flags_changed",
        /// The TOS or traffic class byte of the next packet differs, ECN bits included.
        TrafficClass => "traffic_class_changed",
        /// The TTL or hop limit of the next packet differs from that of the aggregate.
        HopLimit => "hop_limit_changed",
        /// The IPv4 ID of the next packet neither stays constant nor increments as before, inside or outside a tunnel.
        IpId => "ip_id",
        /// The DF bit of the next packet differs from that of the aggregate.
        DontFragment => "df_changed",
        /// The IPv6 flow label of the next packet differs from that of the aggregate.
        FlowLabel => "flow_label_changed",
        /// The link-layer header (addresses, VLAN priority), an extension header or the outer headers of a tunnel
        /// differ in the next packet.
        Link => "link_changed",
        /// Either the checksum of the next packet or those of the held packets are partial, but not both.
        ChecksumStatus => "checksum_status_changed",
        /// A frame of the same flow, or between the same addresses, must be delivered after the aggregate.
        Order => "order",
        /// The flow table was full, and this flow was the least recently used.
        Evicted => "evicted",
        /// Too many flows shared a bucket of the flow table with this flow, so searches would become long. A
        /// sender that knows the seed ([`Config::seed`](crate::Config::seed)) can cause such flushes.
        Collision => "collision",
        /// All frame slots were in use, and this flow was the least recently used.
        Memory => "memory",
        /// The policy was changed: all segments held under the old policy were delivered first.
        PolicyChange => "policy_change",
        /// The caller flushed the whole engine, for example before shutting it down.
        Shutdown => "shutdown",
    }
}
