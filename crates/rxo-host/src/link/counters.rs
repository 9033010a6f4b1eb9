//! The counters of a link.

use super::GateCounters;

rxo_frame::counters! {
    /// Counters of frames by outcome. Each frame that is not TCP counts once.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct LinkCounters {
        /// Number of accepted ARP packets and neighbour discovery messages for this host.
        pub neighbour_messages: u64,
        /// Number of claims of an address of this host by another host.
        pub conflicts: u64,
        /// Number of requests that this host sent for a neighbour's address, including repeated requests.
        pub questions: u64,
        /// Number of answers that this host sent to requests for its address.
        pub answers: u64,
        /// Number of neighbours that were not stored because the table held only gateways.
        pub neighbours_refused: u64,
        /// Number of accepted IGMP and MLD queries for this host.
        pub group_queries: u64,
        /// Number of queries in a version of IGMP or MLD that does not support sources. Each is answered by a
        /// report of the current version.
        pub older_queriers: u64,
        /// Number of membership reports that this host sent.
        pub group_reports: u64,
        /// Number of echo requests that were answered.
        pub echoes: u64,
        /// Number of UDP datagrams that were answered with "port unreachable", because this host has no open
        /// UDP ports.
        pub closed_ports: u64,
        /// Number of address requests and answers that were not sent, because of a rate limit or a full
        /// queue.
        pub held_back: u64,
        /// Number of ICMP errors about segments that this host sent.
        pub path_errors: u64,
        /// Number of frames for this host that were ignored: fragments and unsupported protocols.
        pub ignored: u64,
        /// Number of deliveries that the gate refused because they are not for this host, including TCP. An
        /// aggregate, or the pure ACKs of one delivery, are counted once.
        pub refused: GateCounters,
    }
}
