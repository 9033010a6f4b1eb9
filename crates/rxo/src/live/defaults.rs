//! Defaults of a live path: the policy that applies unless the user chooses another, and the segment limit.

use rxo_coalesce::Policy;

/// The default maximum number of segments per aggregate; see [`Policy::LIVE_MAX_SEGMENTS`].
pub const LIVE_MAX_SEGMENTS: u16 = Policy::LIVE_MAX_SEGMENTS;

/// The name of the default policy for a kernel or a guest: its aggregates can be segmented into exactly the
/// original packets.
pub const POLICY: &str = "linux-gro";

/// Returns `policy` adapted to a live path; see [`Policy::live`].
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
