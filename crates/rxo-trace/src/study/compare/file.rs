//! Reads policies from TOML files. A file names a base policy, and the settings in which the policy differs
//! from the base.
//!
//! ```toml
//! name = "mine"           # optional: the file's name without .toml
//! base = "linux-gro"      # a built-in policy, or juggler
//! max_segments = 16       # any setting of a policy, as `rxo run --set` has them
//! hold = "100us"
//! inseq_timeout = "52us"  # only with base = "juggler"; ofo_timeout likewise
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rxo_coalesce::Policy;
use rxo_coalesce::rules::Juggler;
use thiserror::Error;
use toml_span::Value;
use toml_span::value::{Key, Table};

use super::named::{JUGGLER, NOT_IN_ONE_LINE, NamedPolicy, is_in_one_line};
use crate::study::time::parse_time;

/// An error in a file: line and column, counted from 1, and the message.
#[derive(Debug, Error)]
#[error("{line}:{column}: {message}")]
pub(super) struct Fault {
    line: usize,
    column: usize,
    message: String,
}

impl Fault {
    /// Creates the fault at byte offset `at` in the content `text` of the file.
    fn at(text: &str, at: usize, message: String) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { line, column, message: in_one_line(&message) }
    }
}

/// Returns `message` with control characters as escapes, because what it repeats from the file may have line breaks.
fn in_one_line(message: &str) -> String {
    let mut line = String::with_capacity(message.len());
    for letter in message.chars() {
        match letter {
            letter if letter.is_control() => line.extend(letter.escape_default()),
            letter => line.push(letter),
        }
    }
    line
}

const NAME: &str = "name";
const BASE: &str = "base";
const INSEQ_TIMEOUT: &str = "inseq_timeout";
const OFO_TIMEOUT: &str = "ofo_timeout";
/// The longest timeout that a file may set for Juggler.
const MOST_TIMEOUT: Duration = Duration::from_millis(100);
/// The settings for pure ACKs, UDP and tunnels, which rules do not coalesce.
const OF_OTHER_PACKETS: &[&str] =
    &["pure_acks", "max_acks", "keep_every", "sack_superset", "udp", "tunnels"];

/// Parses `text`, the content of the file at `path`.
///
/// # Errors
/// If the file is not TOML, or a key or a value is invalid.
pub(super) fn parse(text: &str, path: &Path) -> Result<NamedPolicy, Fault> {
    let root = toml_span::parse(text).map_err(|error| {
        let message = format!("{error}; write it as TOML, such as max_segments = 16");
        Fault::at(text, error.span.start, message)
    })?;
    let empty = Table::default();
    let table = root.as_table().unwrap_or(&empty);
    refuse_second_spellings(table).map_err(|fault| fault.of(text))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = match field(text, table, NAME)? {
        Some((name, at)) if !is_in_one_line(&name) => {
            let message = format!("{NAME}: {name:?} {NOT_IN_ONE_LINE}");
            return Err(Fault::at(text, at, message));
        }
        Some((name, _)) => name,
        None => stem,
    };
    let (base, at) = field(text, table, BASE)?.ok_or_else(|| {
        Fault::at(text, 0, format!("{BASE} is missing; write {BASE} = \"linux-gro\""))
    })?;
    if base == JUGGLER {
        let mut rules = Juggler::new();
        for (key, value) in table.iter().filter(|(key, _)| !is_ours(key)) {
            set_of_juggler(&mut rules, (key, value)).map_err(|fault| fault.of(text))?;
        }
        return Ok(NamedPolicy::of_rules(&name, move || rules.clone()));
    }
    let policy = Policy::by_name(&base)
        .map_err(|error| Fault::at(text, at, format!("{BASE}: {error} or {JUGGLER}")))?;
    let mut policy = policy.live();
    for (key, value) in table.iter().filter(|(key, _)| !is_ours(key)) {
        set(&mut policy, (key, value)).map_err(|fault| fault.of(text))?;
    }
    Ok(NamedPolicy::of_policy(&name, policy))
}

/// Refuses a setting that is given with `-` and again with `_` in its name, because one value would silently win.
///
/// # Errors
/// Names both spellings, at the second one in the file.
fn refuse_second_spellings(table: &Table<'_>) -> Result<(), AtByte> {
    let mut known: BTreeMap<String, &Key<'_>> = BTreeMap::new();
    for key in table.keys() {
        if let Some(other) = known.insert(key.name.replace('-', "_"), key) {
            let second = if key.span.start > other.span.start { key } else { other };
            let message =
                format!("{} and {} are one setting; leave one of them out", other.name, key.name);
            return Err(AtByte(second.span.start, message));
        }
    }
    Ok(())
}

fn is_ours(key: &Key<'_>) -> bool {
    [NAME, BASE].contains(&&*key.name)
}

/// Returns the value of the key `name` as a string, and its byte offset in the file; `None` if the file does
/// not contain the key.
fn field(text: &str, table: &Table<'_>, name: &str) -> Result<Option<(String, usize)>, Fault> {
    let Some(value) = table.get(name) else { return Ok(None) };
    let at = value.span.start;
    match value.as_str().filter(|value| !value.is_empty()) {
        Some(value) => Ok(Some((value.to_owned(), at))),
        None => Err(Fault::at(text, at, format!("{name}: give a text in quotes"))),
    }
}

/// An error with its position: an offset in the file in bytes, and the message.
struct AtByte(usize, String);

impl AtByte {
    fn of(self, text: &str) -> Fault {
        Fault::at(text, self.0, self.1)
    }
}

fn set(policy: &mut Policy, (key, value): (&Key<'_>, &Value<'_>)) -> Result<(), AtByte> {
    let (name, at) = (&*key.name, value.span.start);
    let given = text_of(value).ok_or_else(|| {
        AtByte(at, format!("{name}: give a text in quotes, a number, or true or false"))
    })?;
    policy.set(name, &given).map_err(|error| {
        let is_known = policy.settings().any(|(known, _)| known == name.replace('-', "_"));
        match (is_known, name) {
            (true, _) => AtByte(at, format!("{error}")),
            (false, INSEQ_TIMEOUT | OFO_TIMEOUT) => {
                let message = format!("{name} needs {BASE} = \"{JUGGLER}\"");
                AtByte(key.span.start, message)
            }
            (false, _) => AtByte(
                key.span.start,
                format!("there is no key `{name}`; besides {NAME} and {BASE} {}", error.accepted),
            ),
        }
    })
}

fn set_of_juggler(rules: &mut Juggler, (key, value): (&Key<'_>, &Value<'_>)) -> Result<(), AtByte> {
    let timeout = match &*key.name {
        INSEQ_TIMEOUT => &mut rules.inseq_timeout,
        OFO_TIMEOUT => &mut rules.ofo_timeout,
        "hold" => {
            let message = format!(
                "hold has no effect on {JUGGLER}; give {INSEQ_TIMEOUT}, {OFO_TIMEOUT} or max_hold"
            );
            return Err(AtByte(key.span.start, message));
        }
        name if OF_OTHER_PACKETS.contains(&&*name.replace('-', "_")) => {
            let message = format!(
                "{name} has no effect on {JUGGLER}, which coalesces TCP segments with payload; leave it out"
            );
            return Err(AtByte(key.span.start, message));
        }
        _ => return set(&mut rules.policy, (key, value)),
    };
    let time = text_of(value).and_then(|text| match text.as_str() {
        "0" => Some(Duration::ZERO),
        text => parse_time(text).filter(|time| *time <= MOST_TIMEOUT),
    });
    *timeout = time.ok_or_else(|| {
        AtByte(
            value.span.start,
            format!("{}: give 0 or a time up to 100ms, such as \"52us\"", key.name),
        )
    })?;
    Ok(())
}

/// Returns a value as a user would type it; `None` for a list or a table.
fn text_of(value: &Value<'_>) -> Option<String> {
    let number = || value.as_integer().map(|it| it.to_string());
    let switch = || value.as_bool().map(|it| if it { "yes" } else { "no" }.to_owned());
    value.as_str().map(str::to_owned).or_else(number).or_else(switch)
}

#[cfg(test)]
mod tests {
    use rxo_coalesce::Hold;

    use super::*;

    fn parsed(text: &str) -> Result<NamedPolicy, String> {
        parse(text, Path::new("mine.toml")).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_file_is_its_base_with_changes() {
        let text = "base = \"linux-gro\"\nmax_segments = 16\nhold = \"100us\"\ncoalesce = true\n";
        let mine = parsed(text).unwrap();
        assert_eq!((mine.name(), mine.policy().max_segments), ("mine", 16));
        assert_eq!(mine.policy().hold, Hold::Within(Duration::from_micros(100)));
        let named =
            parsed("name = \"short\"\nbase = \"juggler\"\nflows = 8\nofo_timeout = \"1ms\"\n");
        let named = named.unwrap();
        assert_eq!((named.name(), named.policy().flows), ("short", 8));
    }

    #[test]
    fn an_error_has_line_and_column_and_the_remedy() {
        let rows = [
            ("max_segments = 16", "1:1: base is missing; write base = \"linux-gro\""),
            ("base = \"lro\"", "1:9: base: there is no policy 'lro'; take one of linux-gro"),
            ("base = 5", "1:8: base: give a text in quotes"),
            (
                "base = \"none\"\nmax_segmets = 16",
                "2:1: there is no key `max_segmets`; besides name",
            ),
            ("base = \"none\"\nflows = 0", "2:9: flows=0 is invalid: a number from 1 to 4096"),
            ("base = \"none\"\nflows = [1]", "2:9: flows: give a text in quotes, a number"),
            ("base = \"none\"\nofo_timeout = \"1us\"", "2:1: ofo_timeout needs base = \"juggler\""),
            (
                "base = \"juggler\"\nofo_timeout = \"1s\"",
                "2:16: ofo_timeout: give 0 or a time up to",
            ),
            ("base = \"juggler\"\nhold = \"1us\"", "2:1: hold has no effect on juggler; give"),
            ("base = \"juggler\"\nudp = \"equal\"", "2:1: udp has no effect on juggler, which"),
            ("base = \"juggler\"\nmax-acks = 8", "2:1: max-acks has no effect on juggler, which"),
            ("base = \"none\"\nflows = ", "2:9: "),
            (
                "base = \"none\"\nname = \"a\\nb\"",
                "2:9: name: \"a\\nb\" has a line break or another control character; leave it out",
            ),
            (
                "name = \"\\u001b[31mred\"",
                "1:9: name: \"\\u{1b}[31mred\" has a line break or another",
            ),
            ("name = \"\"\"\na\nb\"\"\"", "2:1: name: \"a\\nb\" has a line break or another"),
            ("base = \"none\"\n\"a\\nb\" = 1", "2:2: there is no key `a\\nb`; besides name"),
            ("base = \"none\"\nhold = \"a\\tb\\n\"", "2:9: hold=a\\tb\\n is invalid: "),
            (
                "base = \"none\"\nmax_segments = 16\nmax-segments = 8",
                "3:1: max-segments and max_segments are one setting; leave one of them out",
            ),
            (
                "max-acks = 8\nbase = \"none\"\nmax_acks = 8",
                "3:1: max-acks and max_acks are one setting; leave one of them out",
            ),
            (
                "base = \"juggler\"\nmax-hold = \"1ms\"\nmax_hold = \"1ms\"",
                "3:1: max-hold and max_hold are one setting; leave one of them out",
            ),
        ];
        for (text, message) in rows {
            let error = parsed(text).unwrap_err();
            assert!(error.starts_with(message), "{text}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn no_setting_can_be_given_in_both_spellings() {
        let policy = Policy::linux_gro();
        let names = policy.settings().map(|(name, _)| name);
        for name in names.filter(|name| name.contains('_')) {
            let other = name.replace('_', "-");
            let error = parsed(&format!("base = \"none\"\n{other} = 1\n{name} = 1\n"));
            let wanted = format!("3:1: {other} and {name} are one setting; leave one of them out");
            assert_eq!(error.unwrap_err(), wanted);
        }
    }
}
