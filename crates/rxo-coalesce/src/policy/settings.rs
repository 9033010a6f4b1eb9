//! Policies and their fields by name, for command lines and configuration files.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use super::{
    AUTO_POLLS, AckRule, CeRule, EceRule, FinRule, Hold, IdRule, OptionRule, PayloadRule, Policy,
    PshRule, PureAckRule, TunnelRule, UdpRule, WindowRule,
};

/// Error: no profile has this name.
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

/// Error: the name or the value of a setting is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The name of the setting, as it was given.
    pub key: String,
    /// The value of the setting, as it was given.
    pub value: String,
    /// A description of the accepted values; for an unknown name, the list of all settings.
    pub accepted: &'static str,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} is invalid: {}", self.key, self.value, self.accepted)
    }
}

impl core::error::Error for SettingError {}

/// A setting of a policy: its name, its accepted values, and its conversion from and to strings.
struct Setting {
    name: &'static str,
    accepted: &'static str,
    set: fn(&mut Policy, &str) -> Option<()>,
    show: fn(&Policy) -> String,
}

impl Policy {
    /// Returns the profile called `name`.
    ///
    /// # Errors
    /// [`UnknownPolicy`], whose message lists all profiles.
    ///
    /// # Examples
    /// ```
    /// use rxo_coalesce::Policy;
    ///
    /// assert_eq!(Policy::by_name("linux-gro")?, Policy::linux_gro());
    /// assert!(Policy::by_name("lro").is_err_and(|error| error.to_string().contains("inet-lro")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn by_name(name: &str) -> Result<Self, UnknownPolicy> {
        Self::all()
            .into_iter()
            .find(|policy| policy.name == name)
            .ok_or_else(|| UnknownPolicy(name.to_owned()))
    }

    /// Sets the field `key` to `value`, both given as strings. Allocates.
    ///
    /// # Errors
    /// [`SettingError`] with the key, the value and a description of the accepted values.
    ///
    /// # Examples
    /// ```
    /// use rxo_coalesce::Policy;
    ///
    /// let mut policy = Policy::linux_gro();
    /// policy.set("max-segments", "8")?;
    /// assert_eq!(policy.max_segments, 8);
    /// assert!(policy.set("max-segments", "many").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        let error = |accepted| SettingError { key: key.into(), value: value.into(), accepted };
        let name = key.replace('-', "_");
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else {
            return Err(error(KEYS));
        };
        (setting.set)(self, value).ok_or_else(|| error(setting.accepted))
    }

    /// Returns an iterator over all fields: the name and the value of each, as strings. Allocates.
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

/// The words for `true` and `false`; the first word for each value is used for output.
const SWITCH: &[(&str, bool)] = &[("yes", true), ("no", false), ("on", true), ("off", false)];

/// Joins string literals: `a, b or c`.
macro_rules! listed {
    ($one:literal) => { $one };
    ($one:literal, $other:literal) => { concat!($one, " or ", $other) };
    ($one:literal, $($rest:literal),+) => { concat!($one, ", ", listed!($($rest),+)) };
}

/// Defines the setting of a field that is `true` or `false`.
macro_rules! switch {
    ($field:ident,) => {
        Setting {
            name: stringify!($field),
            accepted: "yes or no",
            set: |policy, text| word(text, SWITCH).map(|value| policy.$field = value),
            show: |policy| name_of(&policy.$field, SWITCH),
        }
    };
}

/// Defines the setting of a field that is a rule, with the word for each value. In the description of the
/// accepted values, a note may follow the words.
macro_rules! words {
    ($field:ident, $rule:ident: $($word:literal = $value:ident),+ $(; $note:literal)?) => {{
        const WORDS: &[(&str, $rule)] = &[$(($word, $rule::$value)),+];
        Setting {
            name: stringify!($field),
            accepted: concat!(listed!($($word),+) $(, " ", $note)?),
            set: |policy, text| word(text, WORDS).map(|value| policy.$field = value),
            show: |policy| name_of(&policy.$field, WORDS),
        }
    }};
}

/// Defines the setting of a field that is a number in a range.
macro_rules! number {
    ($field:ident, $from:expr, $to:expr, $accepted:literal) => {
        Setting {
            name: stringify!($field),
            accepted: $accepted,
            set: |policy, text| number(text, $from, $to).map(|value| policy.$field = value),
            show: |policy| policy.$field.to_string(),
        }
    };
}

/// Defines the setting of a field by a function that parses its value and a function that formats it.
macro_rules! text {
    ($field:ident, $read:expr, $show:expr, $accepted:literal) => {
        Setting {
            name: stringify!($field),
            accepted: $accepted,
            set: |policy, text| $read(text).map(|value| policy.$field = value),
            show: |policy| $show(policy.$field),
        }
    };
}

/// Defines all settings and the list of their names. Each setting has the name of its field and one of the
/// macros above.
macro_rules! settings {
    (
        $first:ident: $first_form:ident($($first_values:tt)*),
        $($field:ident: $form:ident($($values:tt)*),)*
    ) => {
        const KEYS: &str =
            concat!("the settings are ", stringify!($first) $(, ", ", stringify!($field))*);
        const SETTINGS: &[Setting] =
            &[$first_form!($first, $($first_values)*) $(, $form!($field, $($values)*))*];
    };
}

settings! {
    coalesce: switch(),
    max_segments: number(1, u16::MAX, "a number from 1 to 65535"),
    max_bytes: number(576, 65_535, "a number from 576 to 65535 (the whole IP packet)"),
    buffer_bytes: number(512, u32::MAX, "a number from 512 to 4294967295 (payload only)"),
    flows: number(1, 4_096, "a number from 1 to 4096"),
    ack: words(AckRule: "equal" = Equal, "latest" = Latest, "not-decreasing" = NotDecreasing),
    window: words(WindowRule: "equal" = Equal, "latest" = Latest),
    options: words(
        OptionRule: "identical" = Identical, "timestamp" = TimestampOnly,
        "timestamp-not-decreasing" = TimestampNotDecreasing
    ),
    psh: words(
        PshRule: "keep" = Keep, "close" = AppendThenClose,
        "close-alone-as-is" = AppendThenCloseAloneAsIs
    ),
    fin: words(FinRule: "bypass" = Bypass, "close" = AppendThenClose),
    ece: words(EceRule: "bypass" = Bypass, "equal" = Equal),
    ce: words(CeRule: "bypass" = Bypass, "equal" = Equal),
    ip_id: words(IdRule: "regular" = Regular, "any" = Any),
    needs_df: switch(),
    zero_echo: switch(),
    payload: words(PayloadRule: "any" = Any, "same-then-shorter" = SameThenShorter),
    pure_acks: words(PureAckRule: "bypass" = Bypass, "single" = Single, "record" = Record),
    max_acks: number(1, u16::MAX, "a number from 1 to 65535"),
    keep_every: number(1, u16::MAX, "a number from 1 to 65535 (1 keeps every pure ACK)"),
    sack_superset: switch(),
    udp: words(
        UdpRule: "off" = Off, "equal" = Equal, "auto" = Auto;
        "(equal where the receiver can segment UDP)"
    ),
    tunnels: words(
        TunnelRule: "off" = Off, "on" = On, "auto" = Auto;
        "(on where the receiver can segment TCP inside tunnels)"
    ),
    extension_headers: switch(),
    hold: text(
        |text: &str| text.parse().ok(),
        |hold: Hold| hold.to_string(),
        "end-of-poll, polls:N, packets:N, a time such as 100us (at most 100ms), or auto, auto:TIME or \
         auto:TIME,POLLS"
    ),
    max_hold: text(duration, micros, "a time from 1us to 100ms"),
}

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

/// Error: the string is not a hold policy.
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

/// Parses the limits of adaptive hold: a time, and optionally a number of polls, such as `50us` or `50us,8`.
/// Returns `None` if they are invalid.
fn auto(bounds: &str) -> Option<Hold> {
    let (budget, most_polls) = match bounds.split_once(',') {
        Some((budget, polls)) => (budget, number(polls, 1, MAX_POLLS)?),
        None => (bounds, AUTO_POLLS),
    };
    Some(Hold::Auto { budget: duration(budget)?, most_polls })
}
