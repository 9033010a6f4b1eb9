//! The counters of a link.

use super::GateCounters;

rxo_frame::counters! {
    /// Counters of frames by outcome. Each frame that is not TCP counts once.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct LinkCounters {
        /// Number of ARP packets and neighbour discovery messages that were accepted as meant for this host.
        pub neighbour_messages: u64,
        /// Number of claims of an address of this host by another host.
        pub conflicts: u64,
        /// Number of requests that this host sent for a neighbour's address, repeated ones included.
        pub questions: u64,
        /// Number of answers that this host sent to requests for its address.
        pub answers: u64,
        /// Number of neighbours that were not stored because the table held only gateways.
        pub neighbours_refused: u64,
        /// Number of queries about groups, of IGMP and MLD, that were accepted as meant for this host.
        pub group_queries: u64,
        /// Queries about groups in a version that does not support sources. They are answered by a report of
        /// the current version.
        pub older_queriers: u64,
        /// Number of membership reports that this host sent.
        pub group_reports: u64,
        /// Number of echo requests that were answered.
        pub echoes: u64,
        /// UDP datagrams to this host that were answered with "port unreachable": it has no open UDP ports.
        pub closed_ports: u64,
        /// Number of address requests and answers that were not sent, because of a rate limit or a full
        /// queue.
        pub held_back: u64,
        /// ICMP errors about segments of this host.
        pub path_errors: u64,
        /// Frames for this host that it does not support: other protocols, fragments.
        pub ignored: u64,
        /// Deliveries that the gate refused because they are not for this host, TCP included. An aggregate,
        /// or pure ACKs of one delivery, count once.
        pub refused: GateCounters,
    }
}
