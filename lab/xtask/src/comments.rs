//! `cargo xtask comments`: prints doc comments of the product, drawn at random, for a reader who rates them.
//!
//! The seed decides the sample, so that two readers judge the same comments, and a writer cannot choose them.
//! [`read`] and [`draw`] are pure; [`run`] reads the files and prints.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::files;
use crate::{UsageError, workspace::Workspace};

const USAGE: &str =
    "usage: cargo xtask comments --seed N [--count 40] [--crate NAME,…] | --openings";

/// First words of a doc comment that does not begin with its subject or a verb.
const OPENINGS: [&str; 7] = ["What", "How", "Whether", "Where", "Who", "Why", "Of"];

/// A doc comment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Comment {
    /// Number of its first line in the file, from 1.
    line: usize,
    /// The line of code that it documents; `module` for the comment at the head of a file.
    item: String,
    text: String,
}

/// Prints `--count` comments, or with `--openings` for each crate the number of comments with one of
/// [`OPENINGS`].
///
/// # Errors
/// If an argument is invalid, or a file cannot be read.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let wanted = Wanted::parse(arguments)?;
    let workspace = Workspace::load()?;
    let mut found: BTreeMap<String, Vec<(String, Comment)>> = BTreeMap::new();
    for package in &workspace.packages {
        let is_product = package.folder.parent().is_some_and(|folder| folder.ends_with("crates"));
        if is_product && wanted.takes(&package.name) {
            found.insert(package.name.clone(), of_crate(&workspace.root, &package.folder)?);
        }
    }
    let Some(seed) = wanted.seed else {
        print_openings(&found);
        return Ok(());
    };
    let all: Vec<_> = found.into_values().flatten().collect();
    for (number, index) in draw(all.len(), wanted.count, seed).into_iter().enumerate() {
        let (path, Comment { line, item, text }) = &all[index];
        println!("{}. {path}:{line}  {item}\n\n{text}\n", number + 1);
    }
    Ok(())
}

/// The parsed arguments.
#[derive(Debug)]
struct Wanted {
    /// Seed of the sample; `None` to count the openings instead.
    seed: Option<u64>,
    count: usize,
    /// Names of the crates to sample; empty for all.
    names: Vec<String>,
}

impl Wanted {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut wanted = Self { seed: None, count: 40, names: Vec::new() };
        let mut counts_openings = false;
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| usage(&format!("{flag} needs a value")));
            match flag.as_str() {
                "--seed" => wanted.seed = Some(number(value()?)?),
                "--count" => wanted.count = usize::try_from(number(value()?)?)?,
                "--crate" => wanted.names.extend(value()?.split(',').map(str::to_owned)),
                "--openings" => counts_openings = true,
                other => return Err(usage(&format!("unknown argument {other:?}"))),
            }
        }
        if wanted.seed.is_some() == counts_openings {
            return Err(usage("give either --seed or --openings"));
        }
        Ok(wanted)
    }

    fn takes(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| usage(&format!("{text:?} is no number")))
}

fn usage(wrong: &str) -> anyhow::Error {
    UsageError(format!("{wrong}\n{USAGE}")).into()
}

/// Returns all doc comments in the sources of the crate in `folder`, each with its path below `root`. Tests
/// are left out.
fn of_crate(root: &Path, folder: &Path) -> Result<Vec<(String, Comment)>> {
    let mut comments = Vec::new();
    for path in files::below(&folder.join("src"), "rs")? {
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if shown.contains("/tests/") || shown.ends_with("/tests.rs") {
            continue;
        }
        let source = fs::read_to_string(&path).with_context(|| format!("cannot read {shown}"))?;
        comments.extend(read(&source).into_iter().map(|comment| (shown.clone(), comment)));
    }
    Ok(comments)
}

/// Returns the doc comments of `source`, in order, up to its inline tests.
fn read(source: &str) -> Vec<Comment> {
    let mut comments = Vec::new();
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut lines = source.lines().map(str::trim).zip(1..).peekable();
    while let Some((first, line)) = lines.next() {
        let Some((mark, text)) = doc_line(first) else { continue };
        let mut text = vec![text];
        while let Some((next, _)) = lines.next_if(|(next, _)| next.starts_with(mark)) {
            text.push(next[mark.len()..].trim());
        }
        let item = if mark == "//!" {
            "module"
        } else {
            // Attributes stand between a comment and its item; a long one goes over several lines.
            let mut depth = 0_i32;
            let is_attribute = |(line, _): &(&str, usize)| {
                let belongs = depth > 0 || line.starts_with("#[") || line.is_empty();
                if belongs {
                    let count = |mark| i32::try_from(line.matches(mark).count()).unwrap_or(0);
                    depth += count('[') - count(']');
                }
                !belongs
            };
            lines.find(is_attribute).map_or("", |(line, _)| line)
        };
        comments.push(Comment { line, item: item.to_owned(), text: text.join("\n") });
    }
    comments
}

/// Returns the marker of a doc line (`///` or `//!`) and its text. Four slashes are an ordinary comment.
fn doc_line(line: &str) -> Option<(&'static str, &str)> {
    let mark = ["//!", "///"].into_iter().find(|mark| line.starts_with(mark))?;
    let text = &line[mark.len()..];
    (!text.starts_with('/')).then(|| (mark, text.trim()))
}

/// Returns `count` different indices below `length`, in the order of the draw; all indices if there are
/// fewer.
fn draw(length: usize, count: usize, seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut indices: Vec<usize> = (0..length).collect();
    let count = count.min(length);
    for place in 0..count {
        let left = (length - place) as u64;
        // The remainder favours low indices by one part in 2^50, too little to matter here.
        let offset = usize::try_from(split_mix(&mut state) % left).unwrap_or(0);
        indices.swap(place, place + offset);
    }
    indices.truncate(count);
    indices
}

/// Returns the next number of the `SplitMix64` generator, which is short and gives unrelated sequences for
/// neighbouring seeds.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

fn print_openings(found: &BTreeMap<String, Vec<(String, Comment)>>) {
    println!("{:<16} {:>8} {:>8}", "crate", "comments", "openings");
    let (mut comments, mut openings) = (0, 0);
    for (name, own) in found {
        let bad = own.iter().filter(|(_, comment)| opens_badly(&comment.text)).count();
        println!("{name:<16} {:>8} {bad:>8}", own.len());
        (comments, openings) = (comments + own.len(), openings + bad);
    }
    println!("{:<16} {comments:>8} {openings:>8}", "all");
}

fn opens_badly(text: &str) -> bool {
    text.split_whitespace().next().is_some_and(|word| OPENINGS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "//! A module.\n//! More of it.\n\n/// What a type is.\n#[derive(\n    Debug\n)]\n\
                          pub struct A {\n    /// A field.\n    pub b: u8,\n}\n//// no documentation\n\
                          #[cfg(test)]\nmod tests {\n    /// A test.\n    fn t() {}\n}\n";

    #[test]
    fn comments_are_read_with_their_items() {
        let comment = |line, item: &str, text: &str| Comment {
            line,
            item: item.to_owned(),
            text: text.to_owned(),
        };
        assert_eq!(
            read(SOURCE),
            [
                comment(1, "module", "A module.\nMore of it."),
                comment(4, "pub struct A {", "What a type is."),
                comment(9, "pub b: u8,", "A field."),
            ]
        );
    }

    #[test]
    fn a_seed_draws_the_same_ones_and_none_twice() {
        let drawn = draw(100, 40, 20_261_128);
        assert_eq!(drawn, draw(100, 40, 20_261_128));
        assert_ne!(drawn, draw(100, 40, 20_261_129));
        let mut sorted = drawn.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 40);
        assert_eq!(draw(3, 40, 1).len(), 3);
    }

    #[test]
    fn openings_are_whole_words() {
        assert!(opens_badly("What it is."));
        assert!(!opens_badly("Whatever comes."));
        assert!(!opens_badly("Offsets of a header."));
    }

    #[test]
    fn arguments_are_checked() {
        let parse =
            |text: &str| Wanted::parse(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(parse("--seed 7 --count 3").unwrap().count, 3);
        let openings = parse("--openings --crate rxo-ack,rxo-tcp").unwrap();
        assert!(openings.seed.is_none() && openings.takes("rxo-tcp") && !openings.takes("rxo"));
        for wrong in ["--count 3", "--seed", "--seed x", "--seed 1 --openings", "--other"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
