//! Values that hold unless the user says otherwise, each with its reason.

use rxo_coalesce::Policy;

/// Most segments in an aggregate of the kernel's profile on a live path. From 16 on the cost for a
/// byte hardly falls any more. A Linux sender's burst of 45 segments ends with PSH, so a limit of
/// 16 or 20 leaves short rests and fewer than 16 on average; with 32 it is 18 to 20.
pub(crate) const LIVE_MAX_SEGMENTS: u16 = 32;

/// The profile towards a kernel or a guest: its aggregates can be cut into the original packets
/// again exactly.
pub(crate) const POLICY: &str = "linux-gro";

/// When the host that a capture is studied for polls: what cards that moderate their interrupts are
/// commonly set to.
pub(crate) const STUDIED_POLL: &str = "time:50us";

/// When polls end for a capture that is written anew: as late as a host's budget allows, so that it
/// becomes small.
pub(crate) const WRITTEN_POLL: &str = "packets:64";

/// The policy as it is used live: the kernel's profile has no limit of its own and gets ours.
pub(crate) fn live(policy: Policy) -> Policy {
    if policy.name == POLICY {
        Policy { max_segments: LIVE_MAX_SEGMENTS, ..policy }
    } else {
        policy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_kernels_profile_is_limited() {
        for policy in Policy::all() {
            let live = live(policy);
            let limited = policy.name == POLICY;
            assert_eq!(live.max_segments == LIVE_MAX_SEGMENTS, limited, "{}", policy.name);
            assert_eq!(live == policy, !limited, "{}", policy.name);
        }
    }
}
