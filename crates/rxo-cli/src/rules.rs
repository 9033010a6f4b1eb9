//! Makes the policy from the flags: a profile by name, then single fields. Also parses the rules for polls
//! and checksums.

use anyhow::Result;
use rxo_coalesce::{Hold, Policy};
use rxo_trace::study::{BadPollRule, ChecksumMode, Point, PollRule};

use crate::defaults;
use crate::exit::usage;
use crate::flags::{PolicyFlags, ReplayFlags};

/// Returns the policy that the flags define: the profile that `--policy` names, changed by each `--set KEY=VALUE` in
/// order, and then by `--hold`.
///
/// # Errors
/// If the profile does not exist, or a field or a value is invalid.
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

/// Parses the value of `--hold`.
///
/// # Errors
/// If `text` is invalid.
pub(crate) fn hold(text: &str) -> Result<Hold> {
    let mut policy = Policy::none();
    let set = policy.set("hold", text);
    set.map_err(|error| usage(format!("--hold {text} is invalid: {}", error.accepted)))?;
    Ok(policy.hold)
}

/// Returns the policy, and the rule that decides when a poll ends. Without `--poll` that rule is `default_poll`.
///
/// # Errors
/// If a flag is invalid.
pub(crate) fn point(flags: &ReplayFlags, default_poll: &str) -> Result<Point> {
    let poll = poll(flags.poll.as_deref().unwrap_or(default_poll))?;
    Ok(Point { policy: policy(&flags.policy)?, poll })
}

/// Parses the value of `--poll`, the rule that decides when a poll ends.
///
/// # Errors
/// If `text` is invalid.
pub(crate) fn poll(text: &str) -> Result<PollRule> {
    text.parse().map_err(|BadPollRule| {
        usage(format!("--poll {text} is invalid: {}", BadPollRule::ACCEPTED))
    })
}

/// Parses the value of `--checksum`.
///
/// # Errors
/// If `text` is invalid.
pub(crate) fn checksums(text: &str) -> Result<ChecksumMode> {
    text.parse().map_err(|()| {
        usage(format!("--checksum {text} is invalid: auto, verify, partial or trust"))
    })
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
        assert_eq!(free, Policy { max_segments: 65_535, ..Policy::linux_gro() });
    }

    /// The limits in `--help` are the enforced ones: both ends are accepted, values beyond are not.
    #[test]
    fn the_help_names_the_limits() {
        use clap::CommandFactory;
        let mut command = crate::flags::Cli::command();
        let analyze = command.find_subcommand_mut("analyze").unwrap();
        let help = analyze.render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let parts = [
            "flows=8 (1 to 4096)",
            "polls:N (1 to 1000), packets:N (1 to 65536), or a time such as 100us (1us to 100ms)",
            "for at most 50us and 8 polls; auto:TIME or auto:TIME,POLLS sets other bounds",
            "time:T after its first packet (1ns to 1s)",
            "busy for T (1ns to 1s)",
            "packets:N (1 to 32768)",
            "time:50us for analyze and packets:64 for coalesce",
            "at most 64 combinations",
        ];
        for part in parts {
            assert!(help.contains(part), "{part} is not in {help}");
        }
        let is_poll = |text: &str| poll(text).is_ok();
        assert!(["time:1ns", "time:1s", "host:1ns", "host:1s"].map(is_poll).iter().all(|ok| *ok));
        assert!(["packets:1", "packets:32768"].map(is_poll).iter().all(|ok| *ok));
        let beyond = ["time:0ns", "time:2s", "host:0ns", "host:2s", "packets:0", "packets:32769"];
        assert!(!beyond.map(is_poll).iter().any(|ok| *ok));
        let is_hold = |text: &str| hold(text).is_ok();
        let ends = ["polls:1", "polls:1000", "packets:1", "packets:65536", "1us", "100ms"];
        let auto = ["auto", "auto:1us", "auto:100ms", "auto:50us,1", "auto:50us,1000"];
        assert!(auto.map(is_hold).iter().all(|ok| *ok));
        let beyond = ["auto:", "auto:0us", "auto:101ms", "auto:50us,0", "auto:50us,1001", "auto:8"];
        assert!(!beyond.map(is_hold).iter().any(|ok| *ok));
        assert!(ends.map(is_hold).iter().all(|ok| *ok));
        let beyond = ["polls:0", "polls:1001", "packets:0", "packets:65537", "0us", "101ms"];
        assert!(!beyond.map(is_hold).iter().any(|ok| *ok));
        let is_flows = |text: &str| policy(&flags("linux-gro", &[text], None)).is_ok();
        assert!(["flows=1", "flows=4096"].map(is_flows).iter().all(|ok| *ok));
        assert!(!["flows=0", "flows=4097"].map(is_flows).iter().any(|ok| *ok));
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows: [(&str, &[&str], Option<&str>, &str); 5] = [
            ("lro", &[], None, "--policy lro: there is no policy 'lro'; take one of linux-gro"),
            ("none", &["flows"], None, "--set flows: write key=value"),
            ("none", &["flows=0"], None, "--set flows=0 is invalid: a number from 1 to 4096"),
            ("none", &["speed=1"], None, "--set speed=1 is invalid: the settings are coalesce"),
            ("none", &[], Some("1h"), "--hold 1h is invalid: end-of-poll, polls:N"),
        ];
        for (name, settings, hold, message) in rows {
            let error = policy(&flags(name, settings, hold)).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
            assert!(!error.contains('\n'));
        }
    }
}
