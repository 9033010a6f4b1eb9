//! Why nothing was inserted before a frame of the host.
//!
//! Each reason is a counter with a stable name.

use rxo_frame::reasons;

reasons! {
    /// Why nothing was inserted before a frame of the host.
    PassReason {
        /// It is not a readable TCP segment: another protocol, a fragment, or malformed.
        NotTcp => "not_tcp",
        /// It carries payload, or is a GSO frame.
        Data => "data",
        /// It has SYN, FIN, RST, PSH, URG or a reserved bit, or no ACK.
        Flags => "flags",
        /// It has ECE, CWR or AE, which every inserted ACK would repeat.
        Ecn => "ecn",
        /// It has options besides the timestamp, such as SACK.
        Options => "options",
        /// It is IPv4 without DF: every packet would need an identification of its own.
        MayBeFragmented => "may_be_fragmented",
        /// Its headers are too long for a slot, or its partial checksum is outside the TCP header.
        Form => "form",
        /// Nothing was delivered on this flow, or the flow was evicted.
        UnknownFlow => "unknown_flow",
        /// It is the first ACK seen on this flow: what the host acknowledged before is unknown.
        FirstAck => "first_ack",
        /// It acknowledges less than an ACK before it.
        OldAck => "old_ack",
        /// It repeats the ACK number and window of the last ACK, which may signal loss.
        Duplicate => "duplicate_ack",
        /// It repeats the ACK number of the last ACK with another window.
        WindowUpdate => "window_update",
        /// It does not end at a segment boundary, or some boundaries before it are unknown.
        UnknownBoundaries => "unknown_boundaries",
        /// It acknowledges no more segments than a single ACK may.
        FewSegments => "few_segments",
    }
}
