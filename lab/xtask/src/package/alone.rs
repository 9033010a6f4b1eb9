//! Unpacks packages side by side, outside the workspace that they come from.
//!
//! They are members of a workspace of their own, whose `[patch]` table resolves their dependencies on each
//! other; so a file that is missing in a package cannot come from the sources. The lock file is a copy of
//! ours, so that the same versions are built without the network.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::sh::Program;
use crate::workspace::{Package, Workspace};

/// A workspace of unpacked packages.
pub(super) struct Alone {
    /// Folder of the workspace.
    pub(super) folder: PathBuf,
    /// Folder of the packed packages.
    pub(super) packages: PathBuf,
    /// Name and version of each package.
    versions: Vec<(String, String)>,
}

impl Alone {
    /// Packs `libraries` and unpacks them.
    pub(super) fn unpack(workspace: &Workspace, libraries: &[&Package]) -> Result<Self> {
        let packages = workspace.target.join("package");
        let folder = packages.join("alone");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let chosen: String = libraries.iter().map(|one| format!(" -p {}", one.name)).collect();
        let pack = format!("package --offline --no-verify --allow-dirty --quiet{chosen}");
        Program::cargo(&workspace.root, &pack).run()?;
        for package in libraries {
            let file = packages.join(format!("{}-{}.crate", package.name, package.version));
            let tar = [OsStr::new("xzf"), file.as_os_str()];
            Program::new(&folder, "tar", tar).run()?;
        }
        let version = |one: &&Package| (one.name.clone(), one.version.clone());
        let alone = Self { folder, packages, versions: libraries.iter().map(version).collect() };
        fs::write(alone.folder.join("Cargo.toml"), alone.manifest())?;
        let lock = "Cargo.lock";
        fs::copy(workspace.root.join(lock), alone.folder.join(lock)).context("the lock file")?;
        Ok(alone)
    }

    /// Returns the `[patch]` table by which cargo finds each package in its folder, with `above` as the path
    /// from the manifest to it.
    pub(super) fn patches(&self, above: &str) -> String {
        let line = |(name, version): &(String, String)| {
            format!("{name} = {{ path = \"{above}{name}-{version}\" }}\n")
        };
        format!("[patch.crates-io]\n{}", self.versions.iter().map(line).collect::<String>())
    }

    /// Returns the version of the package `name`.
    pub(super) fn version_of(&self, name: &str) -> Result<&str> {
        let found = self.versions.iter().find(|(of, _)| of == name);
        found.map(|(_, version)| version.as_str()).with_context(|| format!("no package {name}"))
    }

    /// Returns the manifest of the workspace.
    fn manifest(&self) -> String {
        let member = |(name, version): &(String, String)| format!("    \"{name}-{version}\",\n");
        let members: String = self.versions.iter().map(member).collect();
        let patches = self.patches("");
        format!(
            "[workspace]\nresolver = \"3\"\nmembers = [\n{members}]\n\n\
             [profile.dev]\ndebug = false\n\n{patches}"
        )
    }

    /// Builds the libraries of `packages`, and runs the examples in their documentation.
    pub(super) fn build(&self, packages: &[&Package]) -> Result<()> {
        let chosen: String = packages.iter().map(|one| format!(" -p {}", one.name)).collect();
        Program::cargo(&self.folder, &format!("test --offline --quiet --doc{chosen}")).run()
    }

    /// Checks that the library of `package` compiles without features, and with only those dependency
    /// features that it requests.
    pub(super) fn check_bare(&self, package: &Package) -> Result<()> {
        let command = format!("check --offline --quiet --no-default-features -p {}", package.name);
        Program::cargo(&self.folder, &command).run()
    }
}
