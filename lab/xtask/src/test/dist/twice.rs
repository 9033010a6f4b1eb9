//! Checks that equal sources, built in other folders, give equal bytes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::differences;
use crate::dist::{self, Architecture, Made, Place};
use crate::sh::Program;

/// Makes all packages again from a copy of the sources, in other folders and with another `CARGO_HOME`, and
/// compares.
///
/// # Errors
/// A file differs, or cannot be made.
pub(super) fn compare(
    place: &Place,
    architecture: &'static Architecture,
    made: &[Made],
) -> Result<()> {
    let folder = place.target.join("dist-twice");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    }
    let (root, target, home) = (folder.join("sources"), folder.join("built"), folder.join("cargo"));
    copy_tracked(&place.root, &root)?;
    // The downloads are shared; only their path differs.
    fs::create_dir_all(&home)?;
    symlink(dist::cargo_home().join("registry"), home.join("registry"))?;
    let again =
        Place { root, folder: target.join("dist"), target, cargo_home: home, ..place.clone() };
    let other = dist::make(&again, &[architecture])?;
    let differ = differences(made, &other);
    ensure!(
        differ.is_empty(),
        "built twice, these differ: {}; compare {} with {}",
        differ.join(", "),
        place.folder.display(),
        again.folder.display()
    );
    fs::remove_dir_all(&folder).with_context(|| format!("{}", folder.display()))
}

/// Copies the files that git tracks, and new files that it does not ignore, in their current state.
fn copy_tracked(from: &Path, to: &Path) -> Result<()> {
    let listed = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
    let files = Program::new(from, "git", listed).output()?;
    for file in files.split('\0').filter(|file| !file.is_empty()) {
        let (source, copy) = (from.join(file), to.join(file));
        // Git also lists files that are deleted but not yet committed.
        let Ok(about) = fs::symlink_metadata(&source) else { continue };
        fs::create_dir_all(copy.parent().context("a file is in a folder")?)?;
        if about.is_symlink() {
            symlink(fs::read_link(&source)?, &copy)?;
        } else {
            fs::copy(&source, &copy).with_context(|| format!("cannot copy {file}"))?;
        }
    }
    Ok(())
}
