//! The compared stacks: one host with different optimizations of the paper.

use rxo_coalesce::Policy;
use rxo_demo::wrap::count;
use serde::Serialize;

/// Settings of the host's receive path and of its ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(in crate::menon) struct Stack {
    /// The Aggregation Limit; `None` delivers each frame separately.
    pub(in crate::menon) aggregation_limit: Option<u16>,
    /// `true` if several ACKs leave the stack as one template.
    pub(in crate::menon) ack_offload: bool,
}

impl Stack {
    /// No optimization: frames are delivered separately, with an ACK for every second segment.
    pub(in crate::menon) const ORIGINAL: Self =
        Self { aggregation_limit: None, ack_offload: false };
    /// Receive Aggregation with the paper's limit.
    pub(in crate::menon) const AGGREGATION: Self =
        Self { aggregation_limit: Some(PAPERS_LIMIT), ack_offload: false };
    /// Receive Aggregation and Acknowledgment Offload: the paper's optimized system.
    pub(in crate::menon) const OPTIMIZED: Self = Self { ack_offload: true, ..Self::AGGREGATION };

    /// The stacks of the paper's bars.
    pub(in crate::menon) const ALL: [Self; 3] =
        [Self::ORIGINAL, Self::AGGREGATION, Self::OPTIMIZED];

    /// The optimized system with another limit.
    pub(in crate::menon) const fn limited(limit: u16) -> Self {
        Self { aggregation_limit: Some(limit), ..Self::OPTIMIZED }
    }

    pub(in crate::menon) fn name(self) -> String {
        match (self.aggregation_limit, self.ack_offload) {
            (None, _) => "Original".to_owned(),
            (Some(PAPERS_LIMIT), false) => "+ Receive Aggregation".to_owned(),
            (Some(PAPERS_LIMIT), true) => "+ ACK Offload".to_owned(),
            (Some(limit), _) => format!("Aggregation Limit {limit}"),
        }
    }

    /// Returns the policy of the receive engine.
    pub(in crate::menon) fn policy(self) -> Policy {
        match self.aggregation_limit {
            None => Policy::none(),
            // More flows than connections, so that none is evicted.
            Some(max_segments) => Policy { max_segments, flows: FLOWS, ..Policy::menon_2008() },
        }
    }
}

/// The place of the host in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::menon) enum Place {
    /// On the wire, through a packet socket.
    Wire,
    /// Behind a bridge and a TAP, like a guest.
    Guest,
}

/// A bulk measurement: a number of connections into one stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(in crate::menon) struct Case {
    pub(in crate::menon) place: Place,
    pub(in crate::menon) connections: usize,
    pub(in crate::menon) stack: Stack,
}

impl Case {
    /// Makes a case with the host on the wire.
    pub(in crate::menon) const fn wire(connections: usize, stack: Stack) -> Self {
        Self { place: Place::Wire, connections, stack }
    }

    /// Makes a case with one connection of a guest.
    pub(in crate::menon) const fn guest(stack: Stack) -> Self {
        Self { place: Place::Guest, connections: 1, stack }
    }

    pub(in crate::menon) fn name(self) -> String {
        let guest = if self.place == Place::Guest { " of a guest" } else { "" };
        format!("{}{guest}, {}", count(self.connections, "connection"), self.stack.name())
    }
}

/// Aggregation Limit from which the paper measured no further gain (section 5.2).
pub(in crate::menon) const PAPERS_LIMIT: u16 = 20;
const FLOWS: u16 = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_differs_from_the_one_before_in_one_thing() {
        assert!(!Stack::ORIGINAL.policy().coalesce);
        assert_eq!(Stack::AGGREGATION.policy().max_segments, 20);
        assert_eq!(Stack::AGGREGATION.policy(), Stack::OPTIMIZED.policy());
        assert_eq!(Stack::limited(20), Stack::OPTIMIZED);
        let names = Stack::ALL.map(Stack::name);
        assert_eq!(names, ["Original", "+ Receive Aggregation", "+ ACK Offload"]);
        assert_eq!(Stack::limited(4).name(), "Aggregation Limit 4");
    }
}
