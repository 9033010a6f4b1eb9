//! `cargo xtask semver --since REV`: reports changes of the public interfaces that break programs written for
//! the revision REV.
//!
//! `cargo xtask api` shows every change; this command selects the breaking ones by the rules of Cargo's book.
//! Not part of `test`, because every library is documented twice, which takes minutes. cargo-semver-checks
//! could build the documentation itself, but would rebuild all dependencies for each library.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::UsageError;
use crate::api;
use crate::sh::{self, Program};
use crate::workspace::{Package, Workspace};

/// Runs the command: prints the breaking changes of each library.
///
/// # Errors
/// There are other arguments, cargo-semver-checks is not installed, the revision does not exist, or a change
/// is breaking.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let revision = read(arguments)?;
    if !sh::has_program("cargo-semver-checks") {
        bail!(
            "cargo-semver-checks is not installed: run `cargo install --locked cargo-semver-checks`"
        );
    }
    let workspace = Workspace::load()?;
    let commit = commit(&workspace.root, revision)?;
    let (known, new): (Vec<&Package>, Vec<&Package>) =
        workspace.libraries().partition(|library| was_there(&workspace, library, &commit));
    for library in new {
        println!("{} is new since {revision}", library.name);
    }
    let place = workspace.target.join("semver");
    let earlier = check_out(&workspace.root, &commit, &place)?;
    let mut broken = Vec::new();
    for Package { name, .. } in known {
        // Each revision has its own folder, because the file names are equal.
        let before = api::document(&earlier, &place.join("before"), name, HIDDEN)?;
        let now = api::document(&workspace.root, &place.join("now"), name, HIDDEN)?;
        match compare(&workspace.root, &before, &now)? {
            (Ok(()), _) => println!("{name}: nothing breaks"),
            (Err(_), why) => {
                println!("{name}: {}\n", why.trim());
                broken.push(name.as_str());
            }
        }
    }
    if broken.is_empty() {
        return Ok(());
    }
    bail!("programs written for {revision} may not build with {}", broken.join(", "))
}

/// Puts the sources of `commit` into a folder of `place`, and deletes those of an earlier call.
fn check_out(root: &Path, commit: &str, place: &Path) -> Result<PathBuf> {
    let (sources, archive) = (place.join("sources"), place.join("sources.tar"));
    if sources.exists() {
        fs::remove_dir_all(&sources)?;
    }
    fs::create_dir_all(&sources)?;
    let archive = archive.to_string_lossy();
    Program::new(root, "git", ["archive", "--output", &archive, commit]).output()?;
    // `-m`: with the times of the commit, cargo would regard the files as already built.
    Program::new(&sources, "tar", ["-xmf", &archive]).output()?;
    Ok(sources)
}

/// Compares two versions. Returns an error if a change is breaking, and the output of cargo-semver-checks.
fn compare(root: &Path, before: &Path, now: &Path) -> Result<(Result<()>, String)> {
    let [before, now] = [before, now].map(Path::to_string_lossy);
    // With the release type `minor` only breaking changes are reported, whatever the version numbers are.
    let check = ["semver-checks", "--release-type", "minor"];
    let files = ["--baseline-rustdoc", &before, "--current-rustdoc", &now];
    Program::new(root, "cargo", check.iter().chain(&files)).output_of_both()
}

/// Returns the revision in the arguments.
fn read(arguments: &[String]) -> Result<&str> {
    match arguments {
        [flag, revision] if flag == "--since" && !revision.starts_with('-') => Ok(revision),
        _ => bail!(UsageError("write `cargo xtask semver --since REV`, such as HEAD~30".into())),
    }
}

/// Returns the hash of the commit that `revision` names.
fn commit(root: &Path, revision: &str) -> Result<String> {
    let asked = format!("{revision}^{{commit}}");
    let output = Program::new(root, "git", ["rev-parse", "--verify", "--quiet", &asked]).output();
    match output {
        Ok(commit) => Ok(commit.trim().to_owned()),
        Err(_) => bail!(UsageError(format!("--since {revision}: git knows no such revision"))),
    }
}

/// Returns `true` if the library existed at `commit`.
fn was_there(workspace: &Workspace, library: &Package, commit: &str) -> bool {
    let folder = library.folder.strip_prefix(&workspace.root).unwrap_or(&library.folder);
    let manifest = format!("{commit}:{}", folder.join("Cargo.toml").display());
    Program::new(&workspace.root, "git", ["cat-file", "-e", &manifest]).output().is_ok()
}

/// Rustdoc flags that document private and hidden items too, which cargo-semver-checks expects in its input.
const HIDDEN: &str = "--document-private-items --document-hidden-items";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_wanted() {
        let read = |text: &str| {
            let arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            read(&arguments).map(str::to_owned).ok()
        };
        assert_eq!(read("--since HEAD~30").as_deref(), Some("HEAD~30"));
        for wrong in ["", "--since", "HEAD~30", "--since --json", "--since a b"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_revision_that_is_not_there_is_named() {
        let root = Workspace::load().unwrap().root;
        let error = commit(&root, "no-such-revision").unwrap_err().to_string();
        assert_eq!(error, "--since no-such-revision: git knows no such revision");
    }
}
