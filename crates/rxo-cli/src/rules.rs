//! The policy that was asked for: a profile by name, then its fields one by one; and what goes
//! with it.

use anyhow::Result;
use rxo_coalesce::{Hold, Policy};
use rxo_trace::study::{BadPollRule, ChecksumMode, Point, PollRule};

use crate::defaults;
use crate::exit::usage;
use crate::flags::{PolicyFlags, ReplayFlags};

/// The profile of this name with the settings (`key=value`) and then `hold` applied, in this order.
///
/// # Errors
/// When there is no such profile, or a field or value cannot be.
pub(crate) fn policy(flags: &PolicyFlags) -> Result<Policy> {
    let PolicyFlags { policy: name, set, hold } = flags;
    let profile =
        Policy::by_name(name).map_err(|error| usage(format!("--policy {name}: {error}")))?;
    let mut policy = defaults::live(profile);
    for setting in set {
        let (key, value) = setting.split_once('=').ok_or_else(|| {
            usage(format!("--set {setting}: write key=value, such as max_segments=16"))
        })?;
        policy.set(key, value).map_err(|error| usage(format!("--set {error}")))?;
    }
    if let Some(text) = hold {
        policy.hold = self::hold(text)?;
    }
    Ok(policy)
}

/// How long segments are held, as typed after `--hold`.
///
/// # Errors
/// When it cannot be.
pub(crate) fn hold(text: &str) -> Result<Hold> {
    let mut policy = Policy::none();
    let set = policy.set("hold", text);
    set.map_err(|error| usage(format!("--hold {text} cannot be: {}", error.accepted)))?;
    Ok(policy.hold)
}

/// The policy, and when polls end.
///
/// # Errors
/// When one of them cannot be.
pub(crate) fn point(flags: &ReplayFlags) -> Result<Point> {
    Ok(Point { policy: policy(&flags.policy)?, poll: poll(&flags.poll)? })
}

/// When a poll ends, as typed after `--poll`.
///
/// # Errors
/// When it cannot be.
fn poll(text: &str) -> Result<PollRule> {
    text.parse()
        .map_err(|BadPollRule| usage(format!("--poll {text} cannot be: {}", BadPollRule::ACCEPTED)))
}

/// What to make of checksums, as typed after `--checksum`.
///
/// # Errors
/// When there is no such way.
pub(crate) fn checksums(text: &str) -> Result<ChecksumMode> {
    text.parse()
        .map_err(|()| usage(format!("--checksum {text} cannot be: verify, partial or trust")))
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn flags(name: &str, settings: &[&str], hold: Option<&str>) -> PolicyFlags {
        PolicyFlags {
            policy: name.to_owned(),
            set: settings.iter().map(|&text| text.to_owned()).collect(),
            hold: hold.map(str::to_owned),
        }
    }

    #[test]
    fn fields_are_changed_in_the_order_typed() {
        let settings = ["max_segments=16", "max_segments=8"];
        let policy = policy(&flags("menon-2008", &settings, Some("100us"))).unwrap();
        assert_eq!(policy.max_segments, 8);
        assert_eq!(policy.hold, Hold::Within(Duration::from_micros(100)));
        assert_eq!(policy.name, "menon-2008");
    }

    #[test]
    fn the_kernels_profile_is_limited_unless_told_otherwise() {
        let limited = policy(&flags("linux-gro", &[], None)).unwrap();
        assert_eq!(limited.max_segments, defaults::LIVE_MAX_SEGMENTS);
        let free = policy(&flags("linux-gro", &["max_segments=65535"], None)).unwrap();
        assert_eq!(free, Policy::linux_gro());
    }

    #[test]
    fn what_cannot_be_is_named_with_what_can() {
        let rows: [(&str, &[&str], Option<&str>, &str); 5] = [
            ("lro", &[], None, "--policy lro: there is no policy 'lro'; take one of linux-gro"),
            ("none", &["flows"], None, "--set flows: write key=value"),
            ("none", &["flows=0"], None, "--set flows=0 cannot be: a number from 1 to 4096"),
            ("none", &["speed=1"], None, "--set speed=1 cannot be: the settings are coalesce"),
            ("none", &[], Some("1h"), "--hold 1h cannot be: end-of-poll, polls:N"),
        ];
        for (name, settings, hold, message) in rows {
            let error = policy(&flags(name, settings, hold)).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
            assert!(!error.contains('\n'));
        }
    }
}
