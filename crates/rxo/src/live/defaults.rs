//! The policy of a live path unless the user says otherwise, each value with its reason.

use rxo_coalesce::Policy;

/// Most segments in an aggregate of the kernel's profile on a live path. From 16 on the cost for a
/// byte hardly falls any more. A Linux sender's burst of 45 segments ends with PSH, so a limit of
/// 16 or 20 leaves short rests and fewer than 16 on average; with 32 it is 18 to 20.
pub const LIVE_MAX_SEGMENTS: u16 = 32;

/// The name of the default profile, towards a kernel or a guest: its aggregates can be cut into the original packets
/// again exactly.
pub const POLICY: &str = "linux-gro";

/// The policy as it is used live: the kernel's profile has no limit of its own and gets ours.
pub fn live(policy: Policy) -> Policy {
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
