//! The reasons for which a frame is not consumed by the fast path.
//!
//! The reasons are listed in the order of the checks, with the names of their counters.

use rxo_frame::reasons;

reasons! {
    /// The first check of the fast path that rejected a frame, which then takes the slow path
    /// (`docs/fast-path.md`). If flags, options or headers already show that a frame is not a pure ACK, its TCP
    /// checksum may not have been verified yet. The variants are in the order of the checks; the strings are
    /// the names of the counters, also in JSON.
    FallbackReason {
        /// The fast path for pure ACKs is off, while other modules are on.
        Off => "off",
        /// The frame does not have the length of a pure ACK, is a GSO frame, has a VLAN tag, or is not
        /// addressed to this host.
        Length => "length",
        /// The packet is not TCP over IPv4 or IPv6, is a fragment, has IP options or extension headers, or
        /// its header checksum is wrong.
        Ip => "ip",
        /// The TCP checksum of a plain segment is wrong.
        Checksum => "checksum",
        /// The segment has flags other than ACK, or carries data.
        Flags => "flags",
        /// The segment has an option other than the timestamp, or the timestamp is not at its usual offset.
        Options => "options",
        /// No connection has these addresses and ports.
        NoConnection => "no-connection",
        /// The connection is not synchronized yet, or the gate, which checks addresses, refuses packets of
        /// its flow.
        NotSynchronized => "not-synchronized",
        /// The engine holds an earlier segment of the flow, or an earlier segment took the slow path in the
        /// current batch.
        Order => "order",
        /// Segments wait in the connection's backlog.
        Backlog => "backlog",
    }
}
