//! The ways in which ACKs reach the sending host.

use rxo::live::defaults;
use rxo_coalesce::{Policy, PureAckRule};
use serde::Serialize;

/// A way by which ACKs travel from the wire to the sender's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The way through the kernel alone, with its own GRO, which does not coalesce pure ACKs.
    KernelGro,
    /// The way through rxo without `--ack-aggregate`: every pure ACK is a delivery.
    NoAggregation,
    /// The way through rxo with `--ack-aggregate`, which aggregates pure ACKs.
    AckAggregate,
}

impl Way {
    /// All ways in which ACKs reach the sender, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::KernelGro, Self::NoAggregation, Self::AckAggregate];

    /// Returns the name of this way of the ACKs in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::KernelGro => "kernel-gro",
            Self::NoAggregation => "no-aggregation",
            Self::AckAggregate => "ack-aggregate",
        }
    }

    /// Returns the coalescing policy of rxo for this way of the ACKs; `None` for a way without rxo.
    pub fn policy(self) -> Option<Policy> {
        let policy = defaults::live(Policy::linux_gro());
        match self {
            Self::KernelGro => None,
            Self::NoAggregation => Some(policy),
            Self::AckAggregate => Some(Policy { pure_acks: PureAckRule::Single, ..policy }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_tables_say_the_same_name() {
        for way in Way::ALL {
            assert_eq!(serde_json::to_value(way).unwrap(), way.name());
        }
    }

    #[test]
    fn the_two_ways_through_rxo_differ_in_the_rule_for_pure_acks_alone() {
        let [without, with] =
            [Way::NoAggregation, Way::AckAggregate].map(|way| way.policy().unwrap());
        assert_eq!(Policy { pure_acks: PureAckRule::Single, ..without }, with);
        assert_eq!(without.pure_acks, PureAckRule::Bypass);
    }
}
