//! Parses the configuration file: TOML entries, each named after a flag's long name, become arguments.

use std::fmt;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction};
use toml_span::Value;
use toml_span::value::Key;

/// An entry of the configuration file: a flag and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Long name of the flag that the entry sets, without dashes.
    pub(super) key: String,
    pub(super) given: EntryValue,
    /// The position in the file at which the value of the entry begins.
    pub(super) place: Place,
}

/// The value of an entry of the configuration file.
#[derive(Clone, Debug)]
pub(super) enum EntryValue {
    /// The value of a flag that takes no argument: true or false.
    Switch(bool),
    /// The values of a flag that takes one or several values, each with its position in the file.
    Texts(Vec<(String, Place)>),
}

/// A position in the configuration file. Lines and columns are counted from 1; a column is a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    line: usize,
    column: usize,
}

/// An error in the configuration file: its position, and the message for the user.
#[derive(Debug)]
pub(super) struct Fault(Place, String);

impl Entry {
    /// Returns the entry as the command-line arguments that have the same meaning.
    pub(super) fn arguments(&self) -> Vec<String> {
        let Self { key, given, .. } = self;
        match given {
            EntryValue::Switch(true) => vec![format!("--{key}")],
            EntryValue::Switch(false) => Vec::new(),
            EntryValue::Texts(texts) => {
                texts.iter().map(|(text, _)| format!("--{key}={text}")).collect()
            }
        }
    }

    /// Returns the position of the value that `message` contains, if the entry has several values; otherwise
    /// the position of the whole value.
    pub(super) fn place_in(&self, message: &str) -> Place {
        match &self.given {
            EntryValue::Texts(texts) => {
                let named = texts
                    .iter()
                    .find(|(text, _)| !text.is_empty() && message.contains(text.as_str()));
                named.map_or(self.place, |(_, place)| *place)
            }
            EntryValue::Switch(_) => self.place,
        }
    }
}

impl Place {
    fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { line, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0, self.1)
    }
}

/// Parses the configuration file `text`. Returns its entries in the order of their keys. `command` defines the flags.
///
/// # Errors
/// If `text` is not valid TOML, a key is not a flag of `command`, or a value has another type than its flag.
pub(super) fn parse(text: &str, command: &clap::Command) -> Result<Vec<Entry>, Fault> {
    let place = |byte| Place::of(text, byte);
    let root = toml_span::parse(text).map_err(|error| {
        Fault(
            place(error.span.start),
            format!("{error}; write it as TOML, such as hold = \"auto\""),
        )
    })?;
    let Some(table) = root.as_table() else { return Ok(Vec::new()) };
    let entry = |(key, value): (&Key<'_>, &Value<'_>)| {
        let fault = |byte, line| Fault(place(byte), line);
        let arg = flag(command, &key.name).map_err(|line| fault(key.span.start, line))?;
        let given = read_value(arg, value, place)
            .map_err(|line| fault(value.span.start, format!("{}: {line}", key.name)))?;
        Ok(Entry { key: key.name.to_string(), given, place: place(value.span.start) })
    };
    table.iter().map(entry).collect()
}

/// Returns the definition of the flag whose long name is `key`.
fn flag<'a>(command: &'a clap::Command, key: &str) -> Result<&'a Arg, String> {
    if NOT_IN_FILES.contains(&key) {
        return Err(format!("{key}: cannot stand in a file; leave it out"));
    }
    let found = command.get_arguments().find(|arg| arg.get_long() == Some(key));
    found.ok_or_else(|| match nearest(command, key) {
        Some(name) => format!("there is no flag `{key}`; the nearest is `{name}`"),
        None => format!("there is no flag `{key}`; `rxo run --help` lists all"),
    })
}

/// Returns the long name that is most similar to `key`, as clap suggests it; `None` if no name is similar.
fn nearest(command: &clap::Command, key: &str) -> Option<String> {
    let wrong = ["run".to_owned(), format!("--{key}")];
    let error = command.clone().try_get_matches_from(wrong).err()?;
    match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(name)) => Some(name.trim_start_matches('-').to_owned()),
        _ => None,
    }
}

/// Reads the value of the flag `arg`, and checks that it has the flag's type.
fn read_value(
    arg: &Arg,
    value: &Value<'_>,
    place: impl Fn(usize) -> Place,
) -> Result<EntryValue, &'static str> {
    let one = |value: &Value<'_>| Some((text(value)?, place(value.span.start)));
    match (arg.get_action(), value.as_array()) {
        (ArgAction::SetTrue, _) => {
            value.as_bool().map(EntryValue::Switch).ok_or("give true or false, without quotes")
        }
        (ArgAction::Append, Some(all)) => {
            let texts = all.iter().map(one).collect::<Option<_>>();
            texts.map(EntryValue::Texts).ok_or("give a list of texts, such as [\"a=1\", \"b=2\"]")
        }
        (_, Some(_)) => Err("give one value, not a list"),
        (_, None) => one(value)
            .map(|text| EntryValue::Texts(vec![text]))
            .ok_or("give a text in quotes, such as \"100us\", or a number"),
    }
}

/// Returns a string or a number as a user would type it; `None` for any other type.
fn text(value: &Value<'_>) -> Option<String> {
    let number = || value.as_integer().map(|it| it.to_string());
    let fraction = || value.as_float().map(|it| it.to_string());
    value.as_str().map(str::to_owned).or_else(number).or_else(fraction)
}

/// Long names of flags that a configuration file cannot contain: `--config` and the help flag.
pub(super) const NOT_IN_FILES: [&str; 2] = ["config", "help"];
