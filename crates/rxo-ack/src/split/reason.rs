//! Why nothing was inserted before a frame of the host.
//!
//! Each is a counter with a stable name.

use rxo_frame::reasons;

reasons! {
    /// Why a frame of the host went out with nothing before it.
    PassReason {
        /// No readable TCP segment: another protocol, a fragment, or malformed.
        NotTcp => "not_tcp",
        /// It carries payload, or is several segments in one.
        Data => "data",
        /// SYN, FIN, RST, PSH, URG, a reserved bit, or no ACK.
        Flags => "flags",
        /// ECE, CWR or AE: each ACK would repeat the mark.
        Ecn => "ecn",
        /// Options besides the timestamp, such as SACK.
        Options => "options",
        /// IPv4 without DF: every packet needs an identification of its own.
        MayBeFragmented => "may_be_fragmented",
        /// Headers too long for a slot, or a seed outside the TCP header.
        Form => "form",
        /// Nothing was delivered of this flow, or it was the least recently used.
        UnknownFlow => "unknown_flow",
        /// The first ACK seen of this flow: what came before it is not known.
        FirstAck => "first_ack",
        /// It acknowledges less than an ACK before it.
        OldAck => "old_ack",
        /// The same ACK and window again: it may mean loss.
        Duplicate => "duplicate_ack",
        /// The same ACK with another window.
        WindowUpdate => "window_update",
        /// It does not end where a delivered segment ended, or not all between was seen.
        UnknownBoundaries => "unknown_boundaries",
        /// It acknowledges no more segments than any ACK may.
        FewSegments => "few_segments",
    }
}
