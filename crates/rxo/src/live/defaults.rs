//! The policy of a live path unless the user says otherwise, each value with its reason.

use rxo_coalesce::Policy;

/// See [`Policy::LIVE_MAX_SEGMENTS`].
pub const LIVE_MAX_SEGMENTS: u16 = Policy::LIVE_MAX_SEGMENTS;

/// The name of the default profile, towards a kernel or a guest: its aggregates can be cut into the original packets
/// again exactly.
pub const POLICY: &str = "linux-gro";

/// See [`Policy::live`].
pub fn live(policy: Policy) -> Policy {
    policy.live()
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
