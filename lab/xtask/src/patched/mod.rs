//! Programs of others with rxo inside: downloads their sources, applies the patches of `lab/patches`, and builds them.
//!
//! * `cargo`: programs of cargo's registry.
//! * `go`: wireguard-go, with librxo.
//!
//! The ordinary clients download fixed versions. Only the patches are in the repository, and one program around a library
//! that comes without one.

mod cargo;
mod go;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::sh::{self, Program};
use crate::tunnels;
use crate::workspace::Workspace;

/// The folders of the built programs.
pub(crate) struct Built {
    /// The programs as they are published.
    pub(crate) stock: PathBuf,
    /// The programs with rxo inside.
    pub(crate) patched: PathBuf,
}

impl Built {
    /// Returns the folders, in which nothing need be yet.
    pub(crate) fn below(workspace: &Workspace) -> Self {
        let folder = |name| workspace.target.join(name).join("bin");
        Self { stock: folder("tunnels"), patched: folder("patched") }
    }
}

/// Builds all programs, each as published and patched.
///
/// # Errors
/// A patch is too long or does not fit, or a program cannot be downloaded or built.
pub(crate) fn ensure(workspace: &Workspace) -> Result<()> {
    tunnels::ensure(workspace)?;
    let (root, built) = (workspace.target.join("patched"), Built::below(workspace));
    for folder in [&built.patched, &root.join("sources")] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    ensure!(sh::has_program("patch"), "`patch` is not in PATH: install the package patch");
    cargo::build(workspace, &root, &built)?;
    go::build(workspace, &root, &built.patched).context("wireguard-go")
}

/// Applies the patch `name` of `lab/patches` to the sources in `folder`. It may add `most_lines`, without empty ones.
fn apply(workspace: &Workspace, name: &str, folder: &Path, most_lines: usize) -> Result<()> {
    let patch = workspace.root.join(format!("lab/patches/{name}.patch"));
    let text =
        fs::read_to_string(&patch).with_context(|| format!("cannot read {}", patch.display()))?;
    let added = added(&text);
    ensure!(added <= most_lines, "{} adds {added} lines; {most_lines} are enough", patch.display());
    let patch = patch.display().to_string();
    Program::new(folder, "patch", ["--quiet", "-p1", "-i", &patch]).run_aside()
}

/// Copies the folder `from` to `to`, in place of what is there.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    let folder = to.parent().context("a copy is in a folder")?;
    let paths = [from, to].map(|path| path.display().to_string());
    let options = ["-r", "--no-preserve=mode"].map(str::to_owned);
    Program::new(folder, "cp", options.into_iter().chain(paths)).run_aside()
}

/// Returns the number of lines that a patch adds, without empty ones.
fn added(patch: &str) -> usize {
    let lines = patch.lines().filter_map(|line| line.strip_prefix('+'));
    lines.filter(|line| !line.trim().is_empty() && !line.starts_with("++")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_a_patch_adds_count() {
        let patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,4 @@\n-old\n+new\n+\n same\n+more\n";
        assert_eq!(added(patch), 2);
    }
}
