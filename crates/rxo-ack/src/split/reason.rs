//! Reasons for which nothing was inserted before a frame of the host.
//!
//! Each reason has a counter with a stable name.

use rxo_frame::reasons;

reasons! {
    /// The reason for which nothing was inserted before a frame of the host.
    PassReason {
        /// The frame is not a readable TCP segment: it has another protocol, is a fragment, or is malformed.
        NotTcp => "not_tcp",
        /// The frame carries payload, or is a GSO frame.
        Data => "data",
        /// The frame has SYN, FIN, RST, PSH, URG or a reserved bit set, or ACK not set.
        Flags => "flags",
        /// The frame has ECE, CWR or AE, which every inserted ACK would repeat.
        Ecn => "ecn",
        /// The frame has options besides the timestamp, such as SACK.
        Options => "options",
        /// The frame is an IPv4 packet without DF: every inserted packet would need an identification of its own.
        MayBeFragmented => "may_be_fragmented",
        /// The frame's headers are too long for an ACK slot, or its partial checksum is outside the TCP header.
        Form => "form",
        /// Nothing was delivered on this flow, or the flow was evicted.
        UnknownFlow => "unknown_flow",
        /// The ACK is the first one seen on this flow, so it is unknown what earlier ACKs acknowledged.
        FirstAck => "first_ack",
        /// The ACK has a lower number than an earlier ACK.
        OldAck => "old_ack",
        /// The ACK repeats the ACK number and window of the last ACK, which may signal loss.
        Duplicate => "duplicate_ack",
        /// The ACK repeats the ACK number of the last ACK with another window.
        WindowUpdate => "window_update",
        /// The ACK does not end at a segment boundary, or some boundaries before it are unknown.
        UnknownBoundaries => "unknown_boundaries",
        /// The ACK acknowledges no more segments than a host without coalescing would acknowledge at once.
        FewSegments => "few_segments",
    }
}
