//! Programs of others with rxo inside: downloads their sources, applies the patches of `lab/patches`, and builds them.
//!
//! Cargo downloads fixed versions from its registry. Only the patches are in the repository.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::sh::{self, Program};
use crate::workspace::Workspace;

/// A program: the library that is patched, the command around it, and both's version.
struct Patched {
    library: &'static str,
    command: &'static str,
    version: &'static str,
    /// The file that cargo builds.
    file: &'static str,
    /// Cargo's arguments for the features.
    features: &'static str,
}

const PROGRAMS: [Patched; 2] = [
    Patched {
        library: "boringtun",
        command: "boringtun-cli",
        version: "0.7.1",
        file: "boringtun-cli",
        features: "",
    },
    Patched {
        library: "gotatun",
        command: "gotatun-cli",
        version: "0.10.2",
        file: "gotatun",
        features: "",
    },
];

/// The greatest number of lines that a patch may add.
const MOST_LINES: usize = 40;

/// Builds the patched programs. Returns the folder of their files.
///
/// # Errors
/// A patch is too long or does not fit, or a program cannot be downloaded or built.
pub(crate) fn ensure(workspace: &Workspace) -> Result<PathBuf> {
    let root = workspace.target.join("patched");
    let bin = root.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
    ensure!(sh::has_program("patch"), "`patch` is not in PATH: install the package patch");
    for program in &PROGRAMS {
        build(workspace, &root, program).with_context(|| program.command.to_owned())?;
        let built = root.join("build/release").join(program.file);
        fs::copy(&built, bin.join(program.file))
            .with_context(|| format!("cannot copy {}", built.display()))?;
    }
    Ok(bin)
}

fn build(workspace: &Workspace, root: &Path, program: &Patched) -> Result<()> {
    let Patched { library, command, version, features, .. } = *program;
    let patch = workspace.root.join(format!("lab/patches/{library}-{version}.patch"));
    let text =
        fs::read_to_string(&patch).with_context(|| format!("cannot read {}", patch.display()))?;
    let added = added(&text);
    ensure!(added <= MOST_LINES, "{} adds {added} lines; {MOST_LINES} are enough", patch.display());
    let registry = download(root, program)?;
    for package in [library, command] {
        copy(root, &registry.join(format!("{package}-{version}")), package)?;
    }
    let (sources, patch) = (root.join("sources"), patch.display().to_string());
    Program::new(&sources, "patch", ["--quiet", "-p1", "-i", &patch]).run_aside()?;
    let replaced = |package: &str, path: &Path| {
        format!("--config=patch.crates-io.{package}.path=\"{}\"", path.display())
    };
    let facade = replaced("rxo", &workspace.root.join("crates/rxo"));
    let patched = replaced(library, &sources.join(library));
    let target = root.join("build").display().to_string();
    let build = ["build", "--quiet", "--release", "--target-dir", &target, &facade, &patched];
    let features = features.split_whitespace();
    Program::new(&sources.join(command), "cargo", build.into_iter().chain(features)).run_aside()
}

/// Downloads the sources of both packages. Returns the folder of cargo's registry that contains them.
fn download(root: &Path, program: &Patched) -> Result<PathBuf> {
    let Patched { library, command, version, .. } = *program;
    let stub = root.join("stub");
    fs::create_dir_all(&stub)?;
    let manifest = format!(
        "[workspace]\n[package]\nname = \"stub\"\nversion = \"0.0.0\"\n[lib]\npath = \"stub.rs\"\n\
         [dependencies]\n{library} = \"={version}\"\n{command} = \"={version}\"\n"
    );
    fs::write(stub.join("Cargo.toml"), manifest)?;
    fs::write(stub.join("stub.rs"), "")?;
    Program::cargo(&stub, "fetch --quiet").run_aside()?;
    // A package without a library is downloaded, but no package of the metadata; its folder is beside the other's.
    let metadata = Program::cargo(&stub, "metadata --quiet --format-version 1").output()?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut found = packages.filter(|it| it["name"] == library && it["version"] == version);
    let path = found.find_map(|found| found["manifest_path"].as_str());
    let path = path.with_context(|| format!("cargo did not download {library} {version}"))?;
    let folder = Path::new(path).ancestors().nth(2).context("a registry has a folder")?;
    Ok(folder.to_owned())
}

/// Copies the unpatched sources of `package` from the folder `from`.
fn copy(root: &Path, from: &Path, package: &str) -> Result<()> {
    let to = root.join("sources").join(package);
    if to.exists() {
        fs::remove_dir_all(&to)?;
    }
    fs::create_dir_all(root.join("sources"))?;
    let paths = [from, &to].map(|path| path.display().to_string());
    let options = ["-r", "--no-preserve=mode"].map(str::to_owned);
    Program::new(root, "cp", options.into_iter().chain(paths)).run_aside()?;
    // Otherwise cargo takes the copy for a member of the workspace around it.
    let manifest = to.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    fs::write(manifest, text + "\n[workspace]\n").context("cannot write a manifest")
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
