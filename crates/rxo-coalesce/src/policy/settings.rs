//! Policies and their fields by name, as a user types them.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use super::{
    AUTO_POLLS, AckRule, CeRule, EceRule, FinRule, Hold, OptionRule, PayloadRule, Policy, PshRule,
    PureAckRule, WindowRule,
};

/// No profile has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy(pub String);

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no policy '{}'; take one of", self.0)?;
        for (index, policy) in Policy::all().iter().enumerate() {
            write!(f, "{} {}", if index == 0 { "" } else { "," }, policy.name)?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownPolicy {}

/// The name or the value of a setting is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The setting's name as given.
    pub key: String,
    /// The value as given.
    pub value: String,
    /// What would be accepted.
    pub accepted: &'static str,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} is invalid: {}", self.key, self.value, self.accepted)
    }
}

impl core::error::Error for SettingError {}

/// One setting: how it is read from text and shown as text.
struct Setting {
    name: &'static str,
    accepted: &'static str,
    set: fn(&mut Policy, &str) -> Option<()>,
    show: fn(&Policy) -> String,
}

impl Policy {
    /// The profile of that name.
    ///
    /// # Errors
    /// [`UnknownPolicy`], which lists the names there are.
    pub fn by_name(name: &str) -> Result<Self, UnknownPolicy> {
        Self::all()
            .into_iter()
            .find(|policy| policy.name == name)
            .ok_or_else(|| UnknownPolicy(name.to_owned()))
    }

    /// Changes one field, both given as text. Allocates only to report an error.
    ///
    /// # Errors
    /// [`SettingError`] names the key, the value and what would be accepted.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        let error = |accepted| SettingError { key: key.into(), value: value.into(), accepted };
        let name = key.replace('-', "_");
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else {
            return Err(error(KEYS));
        };
        (setting.set)(self, value).ok_or_else(|| error(setting.accepted))
    }

    /// Every field by name with its value as text. Allocates.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        SETTINGS.iter().map(|setting| (setting.name, (setting.show)(self)))
    }
}

fn number<T: FromStr + PartialOrd>(text: &str, from: T, to: T) -> Option<T> {
    let digits = text.replace('_', "");
    digits.parse().ok().filter(|number| (from..=to).contains(number))
}

fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Option<T> {
    words.iter().find(|(name, _)| *name == text).map(|(_, value)| *value)
}

fn name_of<T: PartialEq>(value: &T, words: &[(&str, T)]) -> String {
    words.iter().find(|(_, known)| known == value).map_or("", |(name, _)| *name).into()
}

const SWITCH: &[(&str, bool)] = &[("yes", true), ("no", false), ("on", true), ("off", false)];
const ACK: &[(&str, AckRule)] = &[
    ("equal", AckRule::Equal),
    ("latest", AckRule::Latest),
    ("not-decreasing", AckRule::NotDecreasing),
];
const WINDOW: &[(&str, WindowRule)] =
    &[("equal", WindowRule::Equal), ("latest", WindowRule::Latest)];
const OPTIONS: &[(&str, OptionRule)] = &[
    ("identical", OptionRule::Identical),
    ("timestamp", OptionRule::TimestampOnly),
    ("timestamp-not-decreasing", OptionRule::TimestampNotDecreasing),
];
const PSH: &[(&str, PshRule)] = &[
    ("keep", PshRule::Keep),
    ("close", PshRule::AppendThenClose),
    ("close-alone-as-is", PshRule::AppendThenCloseAloneAsIs),
];
const FIN: &[(&str, FinRule)] = &[("bypass", FinRule::Bypass), ("close", FinRule::AppendThenClose)];
const ECE: &[(&str, EceRule)] = &[("bypass", EceRule::Bypass), ("equal", EceRule::Equal)];
const CE: &[(&str, CeRule)] = &[("bypass", CeRule::Bypass), ("equal", CeRule::Equal)];
const PAYLOAD: &[(&str, PayloadRule)] =
    &[("any", PayloadRule::Any), ("same-then-shorter", PayloadRule::SameThenShorter)];

const PURE_ACKS: &[(&str, PureAckRule)] = &[
    ("bypass", PureAckRule::Bypass),
    ("single", PureAckRule::Single),
    ("record", PureAckRule::Record),
];

const KEYS: &str = "the settings are coalesce, max_segments, max_bytes, buffer_bytes, flows, ack, \
                    window, options, psh, fin, ece, ce, needs_df, zero_echo, payload, pure_acks, max_acks, keep_every, \
                    sack_superset, extension_headers, hold, max_hold";

const SETTINGS: &[Setting] = &[
    Setting {
        name: "coalesce",
        accepted: "yes or no",
        set: |policy, text| word(text, SWITCH).map(|value| policy.coalesce = value),
        show: |policy| name_of(&policy.coalesce, SWITCH),
    },
    Setting {
        name: "max_segments",
        accepted: "a number from 1 to 65535",
        set: |policy, text| number(text, 1, u16::MAX).map(|value| policy.max_segments = value),
        show: |policy| policy.max_segments.to_string(),
    },
    Setting {
        name: "max_bytes",
        accepted: "a number from 576 to 65535 (the whole IP packet)",
        set: |policy, text| number(text, 576, 65_535).map(|value| policy.max_bytes = value),
        show: |policy| policy.max_bytes.to_string(),
    },
    Setting {
        name: "buffer_bytes",
        accepted: "a number from 512 to 4294967295 (payload only)",
        set: |policy, text| number(text, 512, u32::MAX).map(|value| policy.buffer_bytes = value),
        show: |policy| policy.buffer_bytes.to_string(),
    },
    Setting {
        name: "flows",
        accepted: "a number from 1 to 4096",
        set: |policy, text| number(text, 1, 4_096).map(|value| policy.flows = value),
        show: |policy| policy.flows.to_string(),
    },
    Setting {
        name: "ack",
        accepted: "equal, latest or not-decreasing",
        set: |policy, text| word(text, ACK).map(|value| policy.ack = value),
        show: |policy| name_of(&policy.ack, ACK),
    },
    Setting {
        name: "window",
        accepted: "equal or latest",
        set: |policy, text| word(text, WINDOW).map(|value| policy.window = value),
        show: |policy| name_of(&policy.window, WINDOW),
    },
    Setting {
        name: "options",
        accepted: "identical, timestamp or timestamp-not-decreasing",
        set: |policy, text| word(text, OPTIONS).map(|value| policy.options = value),
        show: |policy| name_of(&policy.options, OPTIONS),
    },
    Setting {
        name: "psh",
        accepted: "keep, close or close-alone-as-is",
        set: |policy, text| word(text, PSH).map(|value| policy.psh = value),
        show: |policy| name_of(&policy.psh, PSH),
    },
    Setting {
        name: "fin",
        accepted: "bypass or close",
        set: |policy, text| word(text, FIN).map(|value| policy.fin = value),
        show: |policy| name_of(&policy.fin, FIN),
    },
    Setting {
        name: "ece",
        accepted: "bypass or equal",
        set: |policy, text| word(text, ECE).map(|value| policy.ece = value),
        show: |policy| name_of(&policy.ece, ECE),
    },
    Setting {
        name: "ce",
        accepted: "bypass or equal",
        set: |policy, text| word(text, CE).map(|value| policy.ce = value),
        show: |policy| name_of(&policy.ce, CE),
    },
    Setting {
        name: "needs_df",
        accepted: "yes or no",
        set: |policy, text| word(text, SWITCH).map(|value| policy.needs_df = value),
        show: |policy| name_of(&policy.needs_df, SWITCH),
    },
    Setting {
        name: "zero_echo",
        accepted: "yes or no",
        set: |policy, text| word(text, SWITCH).map(|value| policy.zero_echo = value),
        show: |policy| name_of(&policy.zero_echo, SWITCH),
    },
    Setting {
        name: "payload",
        accepted: "any or same-then-shorter",
        set: |policy, text| word(text, PAYLOAD).map(|value| policy.payload = value),
        show: |policy| name_of(&policy.payload, PAYLOAD),
    },
    Setting {
        name: "pure_acks",
        accepted: "bypass, single or record",
        set: |policy, text| word(text, PURE_ACKS).map(|value| policy.pure_acks = value),
        show: |policy| name_of(&policy.pure_acks, PURE_ACKS),
    },
    Setting {
        name: "max_acks",
        accepted: "a number from 1 to 65535",
        set: |policy, text| number(text, 1, u16::MAX).map(|value| policy.max_acks = value),
        show: |policy| policy.max_acks.to_string(),
    },
    Setting {
        name: "keep_every",
        accepted: "a number from 1 to 65535 (1 keeps every pure ACK)",
        set: |policy, text| number(text, 1, u16::MAX).map(|value| policy.keep_every = value),
        show: |policy| policy.keep_every.to_string(),
    },
    Setting {
        name: "sack_superset",
        accepted: "yes or no",
        set: |policy, text| word(text, SWITCH).map(|value| policy.sack_superset = value),
        show: |policy| name_of(&policy.sack_superset, SWITCH),
    },
    Setting {
        name: "extension_headers",
        accepted: "yes or no",
        set: |policy, text| word(text, SWITCH).map(|value| policy.extension_headers = value),
        show: |policy| name_of(&policy.extension_headers, SWITCH),
    },
    Setting {
        name: "hold",
        accepted: "end-of-poll, polls:N, packets:N, a time such as 100us (at most 100ms), or auto, \
                   auto:TIME or auto:TIME,POLLS",
        set: |policy, text| text.parse().ok().map(|value| policy.hold = value),
        show: |policy| policy.hold.to_string(),
    },
    Setting {
        name: "max_hold",
        accepted: "a time from 1us to 100ms",
        set: |policy, text| duration(text).map(|value| policy.max_hold = value),
        show: |policy| micros(policy.max_hold),
    },
];

const MAX_POLLS: u32 = 1_000;
const MAX_HOLD: Duration = Duration::from_millis(100);

fn duration(text: &str) -> Option<Duration> {
    let (digits, micros) = match (text.strip_suffix("us"), text.strip_suffix("ms")) {
        (Some(digits), _) => (digits, 1),
        (_, Some(digits)) => (digits, 1_000),
        _ => return None,
    };
    let count: u64 = number(digits, 1, 100_000)?;
    Some(Duration::from_micros(count.checked_mul(micros)?)).filter(|time| *time <= MAX_HOLD)
}

fn micros(time: Duration) -> String {
    format!("{}us", time.as_micros())
}

/// Not a hold policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHold;

impl FromStr for Hold {
    type Err = BadHold;

    fn from_str(text: &str) -> Result<Self, BadHold> {
        let hold = match text.split_once(':') {
            Some(("polls", n)) => number(n, 1, MAX_POLLS).map(Self::EveryNthPoll),
            Some(("packets", n)) => number(n, 1, 65_536).map(Self::EveryNPackets),
            Some(("auto", bounds)) => auto(bounds),
            None if text == "end-of-poll" => Some(Self::EndOfPoll),
            None if text == "auto" => Some(Self::AUTO),
            None => duration(text).map(Self::Within),
            Some(_) => None,
        };
        hold.ok_or(BadHold)
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndOfPoll => f.write_str("end-of-poll"),
            Self::EveryNthPoll(n) => write!(f, "polls:{n}"),
            Self::EveryNPackets(n) => write!(f, "packets:{n}"),
            Self::Within(time) => f.write_str(&micros(*time)),
            Self::Auto { budget, most_polls } => {
                write!(f, "auto:{},{most_polls}", micros(*budget))
            }
        }
    }
}

/// Adaptive hold from `50us` or `50us,8`.
fn auto(bounds: &str) -> Option<Hold> {
    let (budget, most_polls) = match bounds.split_once(',') {
        Some((budget, polls)) => (budget, number(polls, 1, MAX_POLLS)?),
        None => (bounds, AUTO_POLLS),
    };
    Some(Hold::Auto { budget: duration(budget)?, most_polls })
}
