//! Reads the list of requirements from its files.
//!
//! A file begins with `RFC NUMBER TITLE`; then each line is a requirement: `SECTION ID | what it asks`. `ID`
//! is the RFC's own number (`MUST-7`), or our letter if the section has several requirements without numbers,
//! or absent. A final `| later: why` marks a requirement that applies and is not implemented, `| never: why`
//! one that does not apply. `#` begins a comment.

use std::fmt;

use anyhow::{Context, Result, bail};

/// A requirement of an RFC.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Requirement {
    pub(super) rfc: u16,
    pub(super) section: String,
    /// The number or letter; `None` if it is the only requirement of its section.
    pub(super) id: Option<String>,
    /// The requirement in our own words.
    pub(super) asks: String,
    pub(super) standing: Standing,
}

/// The state of a requirement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// Implemented and tested.
    Done,
    /// Applies and is not implemented, with the reason.
    Later(String),
    /// Does not apply, with the reason.
    Never(String),
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RFC {}, section {}", self.rfc, self.section)?;
        self.id.as_ref().map_or(Ok(()), |id| write!(f, " ({id})"))
    }
}

/// Returns all requirements, by RFC and in the order of the files.
pub(super) fn all() -> Result<Vec<Requirement>> {
    let mut all = Vec::new();
    for (name, text) in FILES {
        all.extend(read(text).with_context(|| format!("lab/xtask/src/rfc/requirements/{name}"))?);
    }
    Ok(all)
}

fn read(text: &str) -> Result<Vec<Requirement>> {
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let first = lines.next().and_then(|line| line.strip_prefix("RFC "));
    let number = first.and_then(|rest| rest.split(' ').next());
    let rfc = number.and_then(|number| number.parse().ok());
    let rfc = rfc.context("the first line is not `RFC NUMBER TITLE`")?;
    lines.map(|line| requirement(rfc, line).with_context(|| line.to_owned())).collect()
}

fn requirement(rfc: u16, line: &str) -> Result<Requirement> {
    let mut parts = line.split(" | ");
    let place = parts.next().unwrap_or_default();
    let asks = parts.next().context("nothing is asked")?.trim().to_owned();
    let (section, id) = match place.trim().split_once(' ') {
        Some((section, id)) => (section, Some(id.trim().to_owned())),
        None => (place.trim(), None),
    };
    let standing = parts.next().map_or(Ok(Standing::Done), standing)?;
    Ok(Requirement { rfc, section: section.to_owned(), id, asks, standing })
}

fn standing(text: &str) -> Result<Standing> {
    match text.split_once(": ") {
        Some(("later", why)) => Ok(Standing::Later(why.to_owned())),
        Some(("never", why)) => Ok(Standing::Never(why.to_owned())),
        _ => bail!("{text:?} is neither `later: why` nor `never: why`"),
    }
}

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("requirements/", $name)))),+]
    };
}

const FILES: [(&str, &str); 27] = files![
    "9293.txt", "1122.txt", "1191.txt", "2018.txt", "2883.txt", "3042.txt", "3168.txt", "3465.txt",
    "4861.txt", "4862.txt", "5227.txt", "5681.txt", "5682.txt", "5927.txt", "5961.txt", "6298.txt",
    "6528.txt", "6582.txt", "6675.txt", "6928.txt", "6937.txt", "7323.txt", "7661.txt", "8985.txt",
    "9406.txt", "9438.txt", "9937.txt",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_file_is_read() {
        let text = "# remark\nRFC 7 Title\n\n1.2 MUST-3 | ask\n1.3 a | ask | later: why\n4 | ask | never: no";
        let all = read(text).unwrap();
        let seen: Vec<String> = all.iter().map(Requirement::to_string).collect();
        assert_eq!(
            seen,
            ["RFC 7, section 1.2 (MUST-3)", "RFC 7, section 1.3 (a)", "RFC 7, section 4"]
        );
        assert_eq!(all[1].standing, Standing::Later("why".to_owned()));
        assert_eq!(all[2].standing, Standing::Never("no".to_owned()));
        assert!(read("1.2 | ask").is_err());
        assert!(read("RFC 7 Title\n1.2 | ask | perhaps").is_err());
    }

    #[test]
    fn nothing_is_listed_twice() {
        let mut seen = BTreeSet::new();
        for requirement in all().unwrap() {
            assert!(seen.insert(requirement.to_string()), "{requirement} stands there twice");
        }
    }
}
