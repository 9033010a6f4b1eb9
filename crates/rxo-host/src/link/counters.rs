//! What a link counts.

use super::GateCounters;

/// Frames by what became of them. Each frame that is not TCP's counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// ARP packets and messages of neighbour discovery that were taken.
    pub neighbour_messages: u64,
    /// Somebody else claims an address of this host.
    pub conflicts: u64,
    /// Neighbours that were asked for, first questions and later ones.
    pub questions: u64,
    /// Answers to those who asked for this host.
    pub answers: u64,
    /// Neighbours that were not asked for, because only gateways were left.
    pub neighbours_refused: u64,
    /// Echo requests that were answered.
    pub echoes: u64,
    /// Answers and questions that did not leave: too many, or no room.
    pub held_back: u64,
    /// ICMP errors about segments of this host.
    pub path_errors: u64,
    /// Frames for this host that say nothing to it: other protocols, fragments.
    pub ignored: u64,
    /// What the gate refused, segments of TCP included: an aggregate, or records of pure ACKs that came
    /// together, count once.
    pub refused: GateCounters,
}
