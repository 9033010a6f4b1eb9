//! Reasons for which nothing was inserted before a frame of the host.
//!
//! Each reason has a counter with a stable name.

use rxo_frame::reasons;

reasons! {
    /// The reason for which nothing was inserted before a frame of the host.
    PassReason {
        /// The frame is not a readable TCP segment: another protocol, a fragment, or malformed.
        NotTcp => "not_tcp",
        /// The frame carries payload, or is a GSO frame.
        Data => "data",
        /// The frame has SYN, FIN, RST, PSH, URG or a reserved bit set, or ACK not set.
        Flags => "flags",
        /// The frame has ECE, CWR or AE, which every inserted ACK would repeat.
        Ecn => "ecn",
        /// The frame has options besides the timestamp, such as SACK.
        Options => "options",
        /// The frame is IPv4 without DF: every inserted packet would need its own identification.
        MayBeFragmented => "may_be_fragmented",
        /// The frame's headers are too long for a slot, or its partial checksum is outside the TCP header.
        Form => "form",
        /// Nothing was delivered on this flow, or the flow was evicted.
        UnknownFlow => "unknown_flow",
        /// The ACK is the first one seen on this flow, so the data acknowledged before is unknown.
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
