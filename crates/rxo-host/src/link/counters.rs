//! The counters of a link.

use super::GateCounters;

/// Received frames by outcome, and sent messages. A received frame that is not TCP is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Number of ARP packets and neighbour discovery messages that passed the gate.
    pub neighbour_messages: u64,
    /// Number of messages in which another host claimed an address of this host.
    pub conflicts: u64,
    /// Number of requests sent for a neighbour's Ethernet address, retries included.
    pub questions: u64,
    /// Number of answers sent to requests for this host's address.
    pub answers: u64,
    /// Number of neighbours that were not stored because the table contained only gateways.
    pub neighbours_refused: u64,
    /// Number of IGMP and MLD queries that passed the gate.
    pub group_queries: u64,
    /// Number of these queries in an older version, without sources. They are answered with a report of the
    /// current version.
    pub older_queriers: u64,
    /// Number of membership reports sent.
    pub group_reports: u64,
    /// Number of echo requests that were answered.
    pub echoes: u64,
    /// Number of UDP datagrams that were answered with "port unreachable".
    pub closed_ports: u64,
    /// Number of requests and answers that were not sent, because of the rate limit or a full queue.
    pub held_back: u64,
    /// Number of received ICMP errors about packets of this host.
    pub path_errors: u64,
    /// Number of frames for this host that were ignored: other protocols, and fragments.
    pub ignored: u64,
    /// Deliveries that the gate refused, TCP included. An aggregate, or the pure ACKs of one delivery, count
    /// once.
    pub refused: GateCounters,
}
