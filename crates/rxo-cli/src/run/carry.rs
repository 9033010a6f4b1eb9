//! Whether a sink can carry what a policy makes.
//!
//! Decided before anything is opened for traffic, so that a profile is never half in force.

use anyhow::Result;
use rxo_coalesce::{Policy, PureAckRule};
use rxo_device::SinkCapabilities;

use crate::exit::usage;

/// The policy limited to what the sink named `sink` can carry: aggregates of at most the sink's size.
///
/// # Errors
/// If the sink cannot carry the policy's aggregates at all. The message says why.
pub(crate) fn carried(policy: Policy, sink: &str, can: SinkCapabilities) -> Result<Policy> {
    let name = policy.name;
    if !policy.coalesce {
        return Ok(policy);
    }
    if policy.needs_records {
        return Err(usage(format!(
            "policy {name} cannot go to {sink}: its merged header hides windows and timestamps \
             that the stack behind {sink} has no way to read; take linux-gro"
        )));
    }
    if policy.pure_acks == PureAckRule::Record {
        return Err(usage(format!(
            "pure_acks=record cannot go to {sink}: the stack behind {sink} has no way to read the \
             records of aggregated ACKs; take pure_acks=single"
        )));
    }
    if can.gso_bytes == 0 {
        return Err(usage(format!(
            "policy {name} cannot go to {sink}: it takes no packet larger than its MTU of {}; \
             take --policy none",
            can.mtu
        )));
    }
    Ok(Policy { max_bytes: policy.max_bytes.min(can.gso_bytes), ..policy })
}

#[cfg(test)]
mod tests {
    use rxo_frame::LinkKind;

    use super::*;

    fn sink(gso_bytes: u32) -> SinkCapabilities {
        SinkCapabilities {
            link: LinkKind::Ethernet,
            mtu: 1500,
            gso_bytes,
            gathers: true,
            completes_checksums: true,
        }
    }

    #[test]
    fn records_that_nobody_reads_are_refused() {
        for policy in Policy::all() {
            let carried = carried(policy, "tap:rxo0", sink(65_535));
            assert_eq!(carried.is_err(), policy.needs_records, "{}", policy.name);
        }
        let error = carried(Policy::remember(), "tap:rxo0", sink(65_535)).unwrap_err().to_string();
        assert!(error.starts_with("policy remember cannot go to tap:rxo0: its merged"), "{error}");
        let records = Policy { pure_acks: PureAckRule::Record, ..Policy::linux_gro() };
        let error = carried(records, "tap:rxo0", sink(65_535)).unwrap_err().to_string();
        assert!(error.starts_with("pure_acks=record cannot go to tap:rxo0: the stack"), "{error}");
    }

    #[test]
    fn without_segmentation_only_single_frames_go() {
        let error = carried(Policy::linux_gro(), "packet:eth2", sink(0)).unwrap_err().to_string();
        assert!(error.contains("MTU of 1500; take --policy none"), "{error}");
        assert_eq!(carried(Policy::none(), "packet:eth2", sink(0)).unwrap(), Policy::none());
    }

    #[test]
    fn aggregates_are_no_larger_than_the_sink_takes() {
        let policy = carried(Policy::linux_gro(), "tap:rxo0", sink(32_768)).unwrap();
        assert_eq!(policy.max_bytes, 32_768);
        assert_eq!(carried(Policy::rsc2(), "tap:rxo0", sink(65_535)).unwrap(), Policy::rsc2());
    }
}
