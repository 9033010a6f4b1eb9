//! Reasons why nothing was inserted before a frame of the host.
//!
//! Each reason is a counter with a stable name.

use rxo_frame::reasons;

reasons! {
    /// The reason why nothing was inserted before a frame of the host.
    PassReason {
        /// The frame is no readable TCP segment: another protocol, a fragment, or malformed.
        NotTcp => "not_tcp",
        /// The frame carries payload, or is a GSO frame.
        Data => "data",
        /// The frame has SYN, FIN, RST, PSH, URG or a reserved bit, or no ACK.
        Flags => "flags",
        /// The frame has ECE, CWR or AE, which every inserted ACK would repeat.
        Ecn => "ecn",
        /// The frame has options besides the timestamp, such as SACK.
        Options => "options",
        /// The frame is IPv4 without DF: every inserted packet would need an identification of its own.
        MayBeFragmented => "may_be_fragmented",
        /// The frame's headers are too long for a slot, or its partial checksum is outside the TCP header.
        Form => "form",
        /// Nothing was delivered on this flow, or the flow was evicted.
        UnknownFlow => "unknown_flow",
        /// The ACK is the first one seen on this flow, so the data acknowledged before is unknown.
        FirstAck => "first_ack",
        /// The ACK acknowledges less than an ACK before it.
        OldAck => "old_ack",
        /// The ACK repeats the ACK number and window of the last ACK, which may signal loss.
        Duplicate => "duplicate_ack",
        /// The ACK repeats the ACK number of the last ACK with another window.
        WindowUpdate => "window_update",
        /// The ACK does not end at a segment boundary, or some boundaries before it are unknown.
        UnknownBoundaries => "unknown_boundaries",
        /// The ACK acknowledges no more segments than a single ACK may.
        FewSegments => "few_segments",
    }
}
