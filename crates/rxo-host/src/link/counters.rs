//! The counters of a link.

use super::GateCounters;

rxo_frame::counters! {
    /// Frames by what became of them. Each frame that is not TCP counts once.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct LinkCounters {
        /// ARP packets and neighbour discovery messages that passed the gate.
        pub neighbour_messages: u64,
        /// Claims of an address of this host by another one.
        pub conflicts: u64,
        /// Requests for a neighbour's address, repeated ones included.
        pub questions: u64,
        /// Answers to requests for this host's address.
        pub answers: u64,
        /// Neighbours that found no place because the table held gateways only.
        pub neighbours_refused: u64,
        /// Queries about groups, of IGMP and MLD, that passed the gate.
        pub group_queries: u64,
        /// Those of a version that knows no sources. They are answered by a report of the current version.
        pub older_queriers: u64,
        /// Reports of memberships.
        pub group_reports: u64,
        /// Echo requests that were answered.
        pub echoes: u64,
        /// Datagrams to a port of this host that were answered: all are closed.
        pub closed_ports: u64,
        /// Requests and answers that were not sent: rate limit, or queue full.
        pub held_back: u64,
        /// ICMP errors about segments of this host.
        pub path_errors: u64,
        /// Frames for this host that it does not understand: other protocols, fragments.
        pub ignored: u64,
        /// Deliveries that the gate refused, TCP included. An aggregate, or pure ACKs of one delivery, count once.
        pub refused: GateCounters,
    }
}
