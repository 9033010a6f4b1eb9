//! Writes the README of each published crate from the documentation of its library.
//!
//! A registry shows a crate's README before anything else, and a README that quotes code which nobody
//! compiles becomes wrong. So it is made of the first paragraph, the picture and the example of `src/lib.rs`;
//! the example is a documentation test there, and a whole program in the README.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::workspace::{Package, Workspace};

/// Rewrites the READMEs that differ from the documentation of their crates.
pub(crate) fn write(workspace: &Workspace) -> Result<()> {
    for package in workspace.libraries() {
        let (now, wanted) = both(package)?;
        if now != wanted {
            fs::write(package.folder.join("README.md"), wanted)?;
            println!("{}: README.md is written anew", package.name);
        }
    }
    Ok(())
}

/// Fails if a README differs from the documentation of its crate.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    for package in workspace.libraries() {
        let (now, wanted) = both(package)?;
        if now != wanted {
            bail!(
                "the README of {} differs from its src/lib.rs: `cargo xtask quotes` writes it anew",
                package.name
            );
        }
    }
    Ok(())
}

/// Returns the README as it is (empty if there is none), and as it should be.
fn both(package: &Package) -> Result<(String, String)> {
    let library = package.folder.join("src/lib.rs");
    let source = fs::read_to_string(&library)
        .with_context(|| format!("cannot read {}", library.display()))?;
    let wanted = readme(&package.name, &source)
        .with_context(|| format!("cannot make a README of {}", library.display()))?;
    Ok((fs::read_to_string(package.folder.join("README.md")).unwrap_or_default(), wanted))
}

/// Returns the README of the crate `name` from the text of its `lib.rs`.
///
/// # Errors
/// If the documentation has no paragraph or no example.
fn readme(name: &str, source: &str) -> Result<String> {
    let docs = documentation(source);
    let (head, rest) = docs.split_once("\n\n").context("its documentation is one paragraph")?;
    let picture = match rest.split_once("```\n") {
        Some((picture, _)) if rest.starts_with("```text\n") => format!("{picture}```\n\n"),
        _ => String::new(),
    };
    let (_, examples) = docs.split_once("# Examples\n").context("it has no `# Examples`")?;
    let (_, fenced) = examples.split_once("```").context("it has no code in `# Examples`")?;
    // The rest of the fence's line is for rustdoc: `no_run`.
    let (_, code) = fenced.split_once('\n').unwrap_or_default();
    let (example, _) = code.split_once("```\n").context("its example has no end")?;
    Ok(format!(
        "# {name}\n\n{}\n\n{picture}```rust\n{}\n```\n\nThe documentation of the crate has its \
         contract: `cargo doc --open -p {name}`. It is a part of rxo, receive\noffload in user space, and \
         has the same licence: MIT or Apache-2.0, as you choose.\n",
        unlinked(head),
        program(example).trim_end(),
    ))
}

/// Returns the text of the leading `//!` comment.
fn documentation(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.fold(String::new(), |text, line| text + line.strip_prefix(' ').unwrap_or(line) + "\n")
}

/// Returns the documentation test `example` as a whole program: with the lines that rustdoc hides, in a `main` that
/// returns the error of its last line.
fn program(example: &str) -> String {
    let shown = |line: &str| line.strip_prefix("# ").unwrap_or(line).to_owned();
    let lines: Vec<String> = example.lines().filter(|line| *line != "#").map(shown).collect();
    let (body, result) = match lines.split_last() {
        Some((last, body)) if last.starts_with("Ok::<") => (body, last.as_str()),
        _ => (&lines[..], ""),
    };
    let error = result.strip_prefix("Ok::<(), ").and_then(|rest| rest.strip_suffix(">(())"));
    let indented = |line: &String| match line.as_str() {
        "" => "\n".to_owned(),
        line => format!("    {line}\n"),
    };
    let body: String = body.iter().map(indented).collect();
    // Outside a function's result the lifetime need not be written.
    match error.map(|error| error.replace("&str", "&'static str")) {
        Some(error) => {
            format!("fn main() -> Result<(), {error}> {{\n{}\n    Ok(())\n}}", body.trim_end())
        }
        None => format!("fn main() {{\n{}\n}}", body.trim_end()),
    }
}

/// Returns `text` without links: their targets are items, which only rustdoc finds.
fn unlinked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, label, after)) = first_link(rest) {
        out += before;
        out += label;
        rest = after;
    }
    out + rest
}

/// Returns the text before the first link, its label, and the text behind it.
fn first_link(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('[')?;
    let (label, after) = rest.split_once(']')?;
    let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
    Some((before, label, target.map_or(after, |(_, behind)| behind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &str = "\
//! Reads [`Frame`]s of
//! [links](Link).
//!
//! ```text
//! a ──▶ b
//! ```
//!
//! More.
//!
//! # Examples
//! ```
//! use x::y;
//! # fn hidden() {}
//!
//! y()?;
//! # Ok::<(), x::Error>(())
//! ```
#![no_std]
";

    #[test]
    fn a_readme_has_the_paragraph_the_picture_and_the_example_as_a_program() {
        let text = readme("rxo-x", LIBRARY).unwrap();
        let program = "fn main() -> Result<(), x::Error> {\n    use x::y;\n    fn hidden() {}\n\n    y()?;\n    Ok(())\n}";
        let expected = format!(
            "# rxo-x\n\nReads `Frame`s of\nlinks.\n\n```text\na ──▶ b\n```\n\n```rust\n{program}\n```\n\n"
        );
        assert!(text.starts_with(&expected), "{text}");
        assert!(text.contains("cargo doc --open -p rxo-x"));
    }

    #[test]
    fn an_error_that_is_a_text_has_a_lifetime() {
        let program = program("y()?;\nOk::<(), &str>(())\n");
        assert!(program.starts_with("fn main() -> Result<(), &'static str> {\n"), "{program}");
    }

    #[test]
    fn an_example_that_cannot_fail_is_a_program_without_a_result() {
        assert_eq!(program("let a = 1;\n"), "fn main() {\n    let a = 1;\n}");
    }

    #[test]
    fn a_library_without_an_example_is_an_error() {
        let error = readme("rxo-x", "//! Reads.\n//!\n//! More.\n").unwrap_err();
        assert!(error.to_string().contains("Examples"), "{error}");
    }
}
