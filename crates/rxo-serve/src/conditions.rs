//! Evaluates conditional requests: decides whether the client wants the file in its present version (RFC
//! 9110, section 13).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::lookup::Facts;
use crate::ranges::{self, RangeChoice};
use crate::request::{Conditions, Method};

/// The version of a file as HTTP describes it: its entity tag, and the time of its last change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// The entity tag of the version with its quotation marks, and with `W/` if it is weak.
    pub(crate) tag: String,
    /// The time of the file's last change in whole seconds, the resolution of HTTP dates.
    pub(crate) modified: SystemTime,
    pub(crate) bytes: u64,
}

/// The outcome of a conditional request: the part of the file that the client gets, or the reason for which it
/// gets no part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Whole,
    Part {
        from: u64,
        bytes: u64,
    },
    NotModified,
    /// The present version of the file is not the version that the client requires (status 412).
    NotThatVersion,
    NoSuchRange,
}

impl Version {
    /// Returns the version of `file` for a request at the time `now`.
    ///
    /// The tag contains the length and the time of change in nanoseconds: a copy of the directory with equal
    /// times has equal tags, even on another disk or another server.
    ///
    /// The tag is weak if the file changed in the last two seconds: it may change again within the clock's
    /// tick, which would leave the time unchanged (RFC 9110, section 8.8.1).
    pub(crate) fn new(file: &Facts, now: SystemTime) -> Self {
        let Facts { bytes, changed } = *file;
        let since = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        let is_old = now.duration_since(changed).is_ok_and(|age| age >= STRONG_AGE);
        let weak = if is_old { "" } else { "W/" };
        let tag = format!("{weak}\"{bytes:x}-{:x}\"", since.as_nanos());
        // Never in the future (RFC 9110, section 8.8.2.1).
        let modified = whole_seconds(changed.min(now));
        Self { tag, modified, bytes }
    }

    fn is_strong(&self) -> bool {
        !self.tag.starts_with("W/")
    }
}

/// Returns the outcome of a request with the conditions `asked`, evaluated against this version in the order
/// of RFC 9110, section 13.2.2.
pub(crate) fn outcome(method: Method, asked: &Conditions, version: &Version) -> Outcome {
    if !is_version_wanted(asked, version) {
        return Outcome::NotThatVersion;
    }
    if is_known(asked, version) {
        return Outcome::NotModified;
    }
    match asked.range.as_deref() {
        // A range is only defined for GET (RFC 9110, section 14.2).
        Some(range) if method == Method::Get && is_range_of(asked, version) => {
            match ranges::wanted(range, version.bytes) {
                RangeChoice::Whole => Outcome::Whole,
                RangeChoice::Part { from, bytes } => Outcome::Part { from, bytes },
                RangeChoice::Nothing => Outcome::NoSuchRange,
            }
        }
        _ => Outcome::Whole,
    }
}

/// Returns `true` if the client accepts the present version, by `If-Match`, or by `If-Unmodified-Since` if
/// there is no `If-Match`.
fn is_version_wanted(asked: &Conditions, version: &Version) -> bool {
    match (&asked.if_match, &asked.if_unmodified_since) {
        (Some(tags), _) => {
            tags == "*" || (version.is_strong() && has(tags, |tag| tag == version.tag))
        }
        (None, Some(date)) => time(date).is_none_or(|date| version.modified <= date),
        (None, None) => true,
    }
}

/// Returns `true` if the client already has the present version, by `If-None-Match`, or by
/// `If-Modified-Since` if there is no `If-None-Match`.
fn is_known(asked: &Conditions, version: &Version) -> bool {
    match (&asked.if_none_match, &asked.if_modified_since) {
        (Some(tags), _) => tags == "*" || has(tags, |tag| opaque(tag) == opaque(&version.tag)),
        (None, Some(date)) => time(date).is_some_and(|date| version.modified <= date),
        (None, None) => false,
    }
}

/// Returns `true` if the `If-Range` field names exactly the present version, or is absent. A weak tag does
/// not suffice.
fn is_range_of(asked: &Conditions, version: &Version) -> bool {
    let Some(validator) = asked.if_range.as_deref() else { return true };
    let is_same = validator == version.tag || time(validator) == Some(version.modified);
    is_same && version.is_strong()
}

/// Returns `true` if the condition `it` holds for a tag in the comma-separated list `tags`. A tag that
/// contains a comma is split in two, so it does not match.
fn has(tags: &str, it: impl Fn(&str) -> bool) -> bool {
    tags.split(',').any(|tag| it(tag.trim()))
}

fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

fn time(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text).ok()
}

fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

/// The minimum age of a file's last change for a strong tag. A younger change may be followed by another one
/// within the same tick of the clock, with the same time.
const STRONG_AGE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// Returns the version of a file that changed at second `seconds`, requested at second 2,000.
    fn changed(seconds: u64) -> Version {
        Version::new(&Facts { bytes: 100, changed: at(seconds) }, at(2_000))
    }

    fn version() -> Version {
        changed(1_000)
    }

    fn got(change: impl FnOnce(&mut Conditions)) -> Outcome {
        let mut asked = Conditions::default();
        change(&mut asked);
        outcome(Method::Get, &asked, &version())
    }

    fn date(seconds: u64) -> Option<String> {
        Some(httpdate::fmt_http_date(at(seconds)))
    }

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_version_changes_with_the_file_and_is_weak_while_it_is_new() {
        assert_eq!(version().tag, "\"64-e8d4a51000\"");
        assert_ne!(version().tag, changed(1_001).tag);
        assert!(changed(1_999).tag.starts_with("W/"));
        let future = changed(3_000);
        assert!(future.tag.starts_with("W/") && future.modified == at(2_000));
    }

    #[test]
    fn a_client_that_has_it_already_gets_nothing() {
        let tag = version().tag;
        assert_eq!(got(|asked| asked.if_none_match = Some(tag.clone())), Outcome::NotModified);
        let weak = format!("\"x\", W/{tag}");
        assert_eq!(got(|asked| asked.if_none_match = Some(weak)), Outcome::NotModified);
        assert_eq!(got(|asked| asked.if_none_match = text("*")), Outcome::NotModified);
        assert_eq!(got(|asked| asked.if_modified_since = date(1_000)), Outcome::NotModified);
        assert_eq!(got(|asked| asked.if_modified_since = date(999)), Outcome::Whole);
        assert_eq!(got(|asked| asked.if_modified_since = text("yesterday")), Outcome::Whole);
        // The tag takes precedence over the date.
        let other = got(|asked| {
            asked.if_none_match = text("\"other\"");
            asked.if_modified_since = date(1_000);
        });
        assert_eq!(other, Outcome::Whole);
    }

    #[test]
    fn a_client_that_insists_on_another_version_is_told() {
        assert_eq!(got(|asked| asked.if_match = text("\"other\"")), Outcome::NotThatVersion);
        assert_eq!(got(|asked| asked.if_match = Some(version().tag)), Outcome::Whole);
        assert_eq!(got(|asked| asked.if_unmodified_since = date(999)), Outcome::NotThatVersion);
        assert_eq!(got(|asked| asked.if_unmodified_since = date(1_000)), Outcome::Whole);
    }

    #[test]
    fn a_range_of_another_version_is_the_whole() {
        let range = |if_range: Option<String>| {
            got(|asked| {
                asked.range = text("bytes=90-");
                asked.if_range = if_range;
            })
        };
        let part = Outcome::Part { from: 90, bytes: 10 };
        assert_eq!(range(None), part);
        assert_eq!(range(Some(version().tag)), part);
        assert_eq!(range(date(1_000)), part);
        for other in
            [text("\"other\""), Some(format!("W/{}", version().tag)), date(999), date(1_001)]
        {
            assert_eq!(range(other.clone()), Outcome::Whole, "{other:?}");
        }
        assert_eq!(got(|asked| asked.range = text("bytes=100-")), Outcome::NoSuchRange);
        let asked = Conditions { range: text("bytes=90-"), ..Conditions::default() };
        assert_eq!(outcome(Method::Head, &asked, &version()), Outcome::Whole);
    }
}
