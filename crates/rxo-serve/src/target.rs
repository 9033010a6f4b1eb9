//! Maps a request's target to names below the served directory.
//!
//! This module is the first of two barriers: no resulting name is `..` or contains a `/` or a zero byte, and
//! `..` in a path leads at most to the directory itself (RFC 3986, section 5.2.4). The kernel is the second
//! barrier, which also covers links ([`files`](crate::files)).

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::authority::is_authority;
use crate::refusal::{NOT_FOUND, Refusal};

/// A path below the served directory, as a list of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    names: Vec<Vec<u8>>,
    /// `true` if the path ends with `/`, so that it can only be a directory.
    pub(crate) is_folder: bool,
}

impl Target {
    /// Parses the target of a request line: a path with an optional query, or an absolute `http:` URI, whose
    /// host is ignored.
    ///
    /// # Errors
    /// Returns the answer to send if the target is not a path that can be served.
    pub(crate) fn parse(text: &str) -> Result<Self, Refusal> {
        let path = path_of(text).ok_or(BAD_PATH)?;
        let (mut names, mut is_folder) = (Vec::new(), true);
        for part in path.split('/').skip(1) {
            let name = decoded(part).ok_or(BAD_PATH)?;
            is_folder = matches!(&name[..], b"" | b"." | b"..");
            match &name[..] {
                b"." => {}
                // `..` in the served directory stays in that directory.
                b".." => drop(names.pop()),
                name if name.contains(&0) => return Err(BAD_PATH),
                // No file name contains a slash.
                name if name.contains(&b'/') => return Err(NOT_FOUND),
                _ => names.push(name),
            }
        }
        // Empty names are removed only now, because `..` must remove an empty name like any other.
        names.retain(|name| !name.is_empty());
        Ok(Self { names, is_folder })
    }

    /// Returns the names as a relative path; `.` for the served directory itself.
    pub(crate) fn relative(&self) -> PathBuf {
        if self.names.is_empty() {
            return PathBuf::from(".");
        }
        self.names.iter().map(|name| OsStr::from_bytes(name)).collect()
    }

    /// Returns the path of the directory's URL, with a trailing `/`.
    pub(crate) fn folder_url(&self) -> String {
        let names = self.names.iter().map(|name| format!("/{}", encoded(name)));
        names.collect::<String>() + "/"
    }

    /// Returns the title of the directory's page; `/` for the served directory itself.
    pub(crate) fn title(&self) -> String {
        let names = self.names.iter().map(|name| format!("/{}", String::from_utf8_lossy(name)));
        names.collect::<String>() + "/"
    }

    /// Returns `true` if the directory that contains this path is served too.
    pub(crate) const fn has_parent(&self) -> bool {
        !self.names.is_empty()
    }

    /// Returns the last name of the path; `None` for the served directory itself.
    pub(crate) fn name(&self) -> Option<&[u8]> {
        self.names.last().map(Vec::as_slice)
    }
}

/// Encodes a name for a URL: letters, digits and `-._~` stay, other bytes are percent-encoded.
pub(crate) fn encoded(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for &byte in name {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Returns the path between host and query, which begins with `/`; `None` if the target is neither a path nor
/// an `http:` URI.
fn path_of(target: &str) -> Option<&str> {
    let target = target.split(['?', '#']).next().unwrap_or(target);
    if target.starts_with('/') {
        return Some(target);
    }
    let (scheme, rest) = target.split_once("://")?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if !scheme.eq_ignore_ascii_case("http") || !is_authority(host) {
        return None;
    }
    Some(if path.is_empty() { "/" } else { path })
}

/// Decodes percent-encoding; `None` if it is invalid.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => 16 * digit(bytes.next()?)? + digit(bytes.next()?)?,
            other => other,
        });
    }
    Some(decoded)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

const BAD_PATH: Refusal = Refusal::new(400, "this is no path");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn relative(text: &str) -> Result<String, u16> {
        let target = Target::parse(text).map_err(|refusal| refusal.status)?;
        Ok(target.relative().to_string_lossy().into_owned())
    }

    #[test]
    fn paths_are_read_as_names() {
        let rows = [
            ("/", "."),
            ("//", "."),
            ("/a%20b/./c.txt?x=../y#z", "a b/c.txt"),
            ("/%61", "a"),
            ("/...", "..."),
            ("/a+b\\..", "a+b\\.."),
            ("http://host:80/a/b", "a/b"),
            ("HTTP://host", "."),
            ("HTTP://[fd00::2]:80/a/../b?c", "b"),
            ("http://host?x", "."),
            ("/..", "."),
            ("/a/../b", "b"),
            ("/a/b/../../c/./d/..", "c"),
            ("/../../a", "a"),
            ("/%2e%2e/b", "b"),
            ("/a/.%2E", "."),
            ("/a/%2e%2E/%2e/b", "b"),
            ("/a//../b", "a/b"),
            ("/a/..b/..", "a"),
        ];
        for (text, path) in rows {
            assert_eq!(relative(text).as_deref(), Ok(path), "{text}");
        }
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        let rows = [
            ("/a%00", 400),
            ("/%", 400),
            ("/%4", 400),
            ("/%zz", 400),
            ("/%+1", 400),
            ("/a%2fb", 404),
            ("/..%2f..", 404),
            ("/a%2f../b", 404),
            ("/a%2fb/../c", 404),
            ("/a%00/../b", 400),
            ("http:///a", 400),
            ("http://", 400),
            ("http://u@host/a", 400),
            ("http://a b/", 400),
            ("https://host/a", 400),
            ("*", 400),
            ("a", 400),
            ("ftp://host/a", 400),
            ("", 400),
        ];
        for (text, status) in rows {
            assert_eq!(relative(text), Err(status), "{text}");
        }
    }

    #[test]
    fn what_ends_in_dots_is_a_folder() {
        let is_folder = |text: &str| Target::parse(text).unwrap().is_folder;
        assert!(
            ["/", "/a/", "/a/.", "/a/..", "/a/%2e", "/a/.%2e", "http://a"].map(is_folder)
                == [true; 7]
        );
        assert!(["/a", "/a/../b", "/...", "/a/.b"].map(is_folder) == [false; 4]);
    }

    #[test]
    fn a_folders_address_is_never_another_hosts() {
        let target = Target::parse("//evil.example/%2561").unwrap();
        assert_eq!(target.folder_url(), "/evil.example/%2561/");
        assert_eq!(Target::parse("/").unwrap().folder_url(), "/");
    }

    proptest! {
        #[test]
        fn no_target_leads_out(text in "[/.%a-f0-9A-F?\\\\:~é\u{0}-\u{7f}]{0,40}") {
            if let Ok(target) = Target::parse(&text) {
                let path = target.relative();
                prop_assert!(path.is_relative());
                for part in path.components() {
                    let is_inside = matches!(
                        part,
                        std::path::Component::Normal(_) | std::path::Component::CurDir
                    );
                    prop_assert!(is_inside, "{path:?}");
                }
            }
        }

        #[test]
        fn an_encoded_name_is_read_as_it_was(name in prop::collection::vec(any::<u8>(), 1..20)) {
            let is_name = !matches!(&name[..], b"." | b"..") && !name.contains(&0) && !name.contains(&b'/');
            prop_assume!(is_name);
            let target = Target::parse(&format!("/{}", encoded(&name))).unwrap();
            prop_assert_eq!(target.name(), Some(&name[..]));
            prop_assert_eq!(Target::parse(&target.folder_url()).unwrap().names, target.names);
        }
    }
}
