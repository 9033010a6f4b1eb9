//! The compared stacks: one host with different optimizations of the paper.

use rxo_coalesce::Policy;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// Settings of the host's receive path and of its ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stack {
    /// The Aggregation Limit; `None` delivers each frame separately.
    pub(crate) limit: Option<u16>,
    /// `true` if several ACKs leave the stack as one template.
    pub(crate) ack_offload: bool,
}

impl Stack {
    /// No optimization: frames are delivered separately, with an ACK for every second segment.
    pub(crate) const ORIGINAL: Self = Self { limit: None, ack_offload: false };
    /// Receive Aggregation with the paper's limit.
    pub(crate) const AGGREGATION: Self = Self { limit: Some(PAPERS_LIMIT), ack_offload: false };
    /// Receive Aggregation and Acknowledgment Offload: the paper's optimized system.
    pub(crate) const OPTIMIZED: Self = Self { ack_offload: true, ..Self::AGGREGATION };

    /// The stacks of the paper's bars.
    pub(crate) const ALL: [Self; 3] = [Self::ORIGINAL, Self::AGGREGATION, Self::OPTIMIZED];

    /// The optimized system with another limit.
    pub(crate) const fn limited(limit: u16) -> Self {
        Self { limit: Some(limit), ..Self::OPTIMIZED }
    }

    /// Returns its name in the book of claims.
    pub(crate) const fn name(self) -> &'static str {
        match (self.limit, self.ack_offload) {
            (None, _) => "original",
            (Some(PAPERS_LIMIT), false) => "aggregation",
            (Some(PAPERS_LIMIT), true) => "optimized",
            _ => "limited",
        }
    }

    /// Returns the policy of the receive engine.
    pub(crate) fn policy(self) -> Policy {
        match self.limit {
            None => Policy::none(),
            // More flows than connections, so that none is evicted.
            Some(max_segments) => Policy { max_segments, flows: FLOWS, ..Policy::menon_2008() },
        }
    }
}

impl Serialize for Stack {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Stack", 3)?;
        fields.serialize_field("name", self.name())?;
        fields.serialize_field("aggregation_limit", &self.limit)?;
        fields.serialize_field("ack_offload", &self.ack_offload)?;
        fields.end()
    }
}

/// Aggregation Limit from which the paper measured no further gain (section 5.2).
pub(crate) const PAPERS_LIMIT: u16 = 20;
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
        assert_eq!(Stack::ALL.map(Stack::name), ["original", "aggregation", "optimized"]);
    }
}
