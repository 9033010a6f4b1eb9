//! The stacks that are compared: one host, with more or less of what the paper adds.

use rxo_coalesce::Policy;
use rxo_demo::wrap::count;
use serde::Serialize;

/// How the host receives and acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(in crate::menon) struct Stack {
    /// The Aggregation Limit; `None`: each frame alone.
    pub(in crate::menon) aggregation_limit: Option<u16>,
    /// True if several ACKs leave the stack as one template.
    pub(in crate::menon) ack_offload: bool,
}

impl Stack {
    /// Each frame alone, an ACK for every second segment.
    pub(in crate::menon) const ORIGINAL: Self =
        Self { aggregation_limit: None, ack_offload: false };
    /// Receive Aggregation with the paper's limit.
    pub(in crate::menon) const AGGREGATION: Self =
        Self { aggregation_limit: Some(PAPERS_LIMIT), ack_offload: false };
    /// And Acknowledgment Offload: the paper's optimized system.
    pub(in crate::menon) const OPTIMIZED: Self = Self { ack_offload: true, ..Self::AGGREGATION };

    /// What the paper's bars are of.
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

    /// What the receive engine is to do.
    pub(in crate::menon) fn policy(self) -> Policy {
        match self.aggregation_limit {
            None => Policy::none(),
            // More flows than connections: none is evicted for want of a place.
            Some(max_segments) => Policy { max_segments, flows: FLOWS, ..Policy::menon_2008() },
        }
    }
}

/// Where the host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::menon) enum Place {
    /// On the wire itself, by a packet socket.
    Wire,
    /// Behind a bridge and a TAP, as a guest is.
    Guest,
}

/// A bulk measurement: so many connections into this stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(in crate::menon) struct Case {
    pub(in crate::menon) place: Place,
    pub(in crate::menon) connections: usize,
    pub(in crate::menon) stack: Stack,
}

impl Case {
    /// On the wire.
    pub(in crate::menon) const fn wire(connections: usize, stack: Stack) -> Self {
        Self { place: Place::Wire, connections, stack }
    }

    /// One connection of a guest.
    pub(in crate::menon) const fn guest(stack: Stack) -> Self {
        Self { place: Place::Guest, connections: 1, stack }
    }

    pub(in crate::menon) fn name(self) -> String {
        let guest = if self.place == Place::Guest { " of a guest" } else { "" };
        format!("{}{guest}, {}", count(self.connections, "connection"), self.stack.name())
    }
}

/// Where the paper's own measurement shows no further gain (section 5.2).
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
