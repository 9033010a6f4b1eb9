//! Applies `--ack-aggregate` to the policy.

use anyhow::Result;
use rxo_coalesce::{Policy, PureAckRule};

use crate::exit::usage;

/// Returns `policy` changed to aggregate pure ACKs, for a host that does not read records. A policy that
/// already aggregates ACKs with records is returned unchanged; if the sink cannot carry records, a later
/// check refuses the policy.
///
/// # Errors
/// If the policy's other fields leave nothing to aggregate.
pub(crate) fn aggregated(policy: Policy) -> Result<Policy> {
    let Policy { name, max_acks, keep_every, .. } = policy;
    if !policy.coalesce {
        return Err(usage(format!(
            "--ack-aggregate does nothing with policy {name}, which aggregates nothing; \
             take linux-gro"
        )));
    }
    if max_acks.min(keep_every) < 2 {
        return Err(usage(format!(
            "--ack-aggregate does nothing with max_acks={max_acks} and keep_every={keep_every}; \
             set both to at least 2"
        )));
    }
    match policy.pure_acks {
        PureAckRule::Bypass => Ok(Policy { pure_acks: PureAckRule::Single, ..policy }),
        PureAckRule::Single | PureAckRule::Record => Ok(policy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_policy_that_aggregates_takes_pure_acks_too() {
        for policy in Policy::all().into_iter().filter(|policy| policy.coalesce) {
            let with = aggregated(policy).unwrap();
            let asks = policy.pure_acks == PureAckRule::Record;
            assert_eq!(with.pure_acks == PureAckRule::Record, asks, "{}", policy.name);
            assert_eq!(Policy { pure_acks: policy.pure_acks, ..with }, policy);
            assert_ne!(with.pure_acks, PureAckRule::Bypass);
        }
    }

    #[test]
    fn what_does_nothing_is_refused() {
        let keeps = Policy { keep_every: 1, ..Policy::linux_gro() };
        let rows = [
            (Policy::none(), "--ack-aggregate does nothing with policy none, which"),
            (keeps, "--ack-aggregate does nothing with max_acks=64 and keep_every=1; set both"),
        ];
        for (policy, message) in rows {
            let error = aggregated(policy).unwrap_err().to_string();
            assert!(error.starts_with(message) && !error.contains('\n'), "{error}");
        }
    }
}
