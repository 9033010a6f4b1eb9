//! Keeps the code in README.md equal to the source file it comes from, and the READMEs of the crates equal to
//! their documentation ([`readmes`]).
//!
//! The text between `<!-- quote PATH -->` and `<!-- /quote -->` is the file at `PATH`, or only its part
//! between `// quote:begin` and `// quote:end`. Code in a document is never compiled and soon becomes wrong;
//! the quoted file is compiled.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::readmes;
use crate::workspace::Workspace;

const README: &str = "README.md";

/// `cargo xtask quotes`: rewrites the quoted code in README.md, and the READMEs of the crates.
pub(crate) fn write() -> Result<()> {
    let workspace = Workspace::load()?;
    let (now, wanted) = both(&workspace)?;
    if now != wanted {
        fs::write(workspace.root.join(README), wanted)?;
        println!("{README}: the quoted code is written anew");
    }
    readmes::write(&workspace)
}

/// Fails if the quoted code differs from its source file.
pub(crate) fn check() -> Result<()> {
    let workspace = Workspace::load()?;
    let (now, wanted) = both(&workspace)?;
    if now != wanted {
        bail!("{README} quotes code that has changed since: `cargo xtask quotes` writes it anew");
    }
    readmes::check(&workspace)
}

/// Returns README.md as it is, and with up-to-date quotations.
fn both(workspace: &Workspace) -> Result<(String, String)> {
    let read = |path: &str| {
        let full = workspace.root.join(path);
        fs::read_to_string(&full).with_context(|| format!("cannot read {}", full.display()))
    };
    let now = read(README)?;
    let wanted = quoted(&now, read)?;
    Ok((now, wanted))
}

/// Returns `document` with every quotation replaced by the text that `read` returns for its path.
fn quoted(document: &str, read: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut text = String::new();
    let mut lines = document.split_inclusive('\n');
    while let Some(line) = lines.next() {
        text += line;
        let opening = line.trim().strip_prefix("<!-- quote ");
        let Some(path) = opening.and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let end = lines.find(|line| line.trim() == "<!-- /quote -->");
        let end = end.with_context(|| format!("the quotation of {path} has no end"))?;
        text += &format!("```rust\n{}\n```\n{end}", part(&read(path)?));
    }
    Ok(text)
}

/// Returns the quoted part of a file: between its marks, or all of it without marks.
fn part(source: &str) -> &str {
    let after = source.split_once("// quote:begin\n").map_or(source, |(_, after)| after);
    after.split_once("// quote:end").map_or(after, |(part, _)| part).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "a\n<!-- quote x.rs -->\n```rust\nold\n```\n<!-- /quote -->\nb\n";

    #[test]
    fn what_is_quoted_is_replaced() {
        let text = quoted(DOCUMENT, |path| Ok(format!("// {path}\nfn new() {{}}\n"))).unwrap();
        let expected =
            "a\n<!-- quote x.rs -->\n```rust\n// x.rs\nfn new() {}\n```\n<!-- /quote -->\nb\n";
        assert_eq!(text, expected);
        assert_eq!(quoted(&text, |_| Ok("// x.rs\nfn new() {}\n".to_owned())).unwrap(), expected);
    }

    #[test]
    fn a_file_may_show_a_part() {
        let source = "use a;\n// quote:begin\nfn b() {}\n// quote:end\nfn c() {}\n";
        assert_eq!(part(source), "fn b() {}");
        assert_eq!(part("fn a() {}\n"), "fn a() {}");
    }

    #[test]
    fn a_quotation_without_end_is_an_error() {
        let error = quoted("<!-- quote x.rs -->\n", |_| Ok(String::new())).unwrap_err();
        assert!(error.to_string().contains("x.rs"), "{error}");
    }
}
