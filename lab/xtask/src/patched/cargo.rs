//! Programs of cargo's registry: downloads packages, copies and patches them, and builds a program with the copies.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Built, apply, copy};
use crate::sh::Program;
use crate::workspace::Workspace;

/// A program, and the packages that its patch may change.
struct Patched {
    patch: &'static str,
    /// The packages to download, each with its version. Their copies take the place of the registry's.
    packages: &'static [(&'static str, &'static str)],
    /// The package of the program, which is one of those, or the folder of `lab/patches` with its manifest.
    command: &'static str,
    /// The file that cargo builds.
    file: &'static str,
    /// `true` if the program as published is built here, from the same sources, and not installed elsewhere.
    builds_stock: bool,
}

const PROGRAMS: [Patched; 4] = [
    Patched {
        patch: "boringtun-0.7.1",
        packages: &[("boringtun", "0.7.1"), ("boringtun-cli", "0.7.1")],
        command: "boringtun-cli",
        file: "boringtun-cli",
        builds_stock: false,
    },
    Patched {
        patch: "gotatun-0.10.2",
        packages: &[("gotatun", "0.10.2"), ("gotatun-cli", "0.10.2")],
        command: "gotatun-cli",
        file: "gotatun",
        builds_stock: false,
    },
    Patched {
        patch: "tun2proxy-0.8.7",
        packages: &[("ipstack", "1.0.1"), ("tun2proxy", "0.8.7")],
        command: "tun2proxy",
        file: "tun2proxy-bin",
        builds_stock: true,
    },
    Patched {
        patch: "vhost-device-net-0.1.1",
        packages: &[("vhost-device-net", "0.1.1")],
        command: "vhost-tap",
        file: "vhost-tap",
        builds_stock: true,
    },
];

/// The greatest number of lines that a patch may add.
const MOST_LINES: usize = 40;

/// Builds all programs below `root`, and copies their files to `built`.
pub(super) fn build(workspace: &Workspace, root: &Path, built: &Built) -> Result<()> {
    for program in &PROGRAMS {
        build_one(workspace, root, program, built).with_context(|| program.command.to_owned())?;
    }
    Ok(())
}

fn build_one(workspace: &Workspace, root: &Path, program: &Patched, built: &Built) -> Result<()> {
    let Patched { patch, packages, command, file, builds_stock } = *program;
    let (sources, registry) = (root.join("sources"), download(root, packages)?);
    for (package, version) in packages {
        copy_package(&registry.join(format!("{package}-{version}")), &sources.join(package))?;
    }
    let is_ours = packages.iter().all(|(package, _)| *package != command);
    if is_ours {
        copy_package(&workspace.root.join("lab/patches").join(command), &sources.join(command))?;
    }
    let cargo = || {
        let replaced = |package: &str, path: &Path| {
            format!("--config=patch.crates-io.{package}.path=\"{}\"", path.display())
        };
        let facade = replaced("rxo", &workspace.root.join("crates/rxo"));
        let copies = packages.iter().filter(|(package, _)| *package != command);
        let copies = copies.map(|(package, _)| replaced(package, &sources.join(package)));
        let target = root.join("build").display().to_string();
        let build = ["build", "--quiet", "--release", "--target-dir", &target, &facade];
        let build = build.map(str::to_owned).into_iter().chain(copies);
        Program::new(&sources.join(command), "cargo", build).run_aside()
    };
    let made = root.join("build/release").join(file);
    let keep = |folder: &Path| {
        let copied = fs::copy(&made, folder.join(file));
        copied.map(drop).with_context(|| format!("cannot copy {}", made.display()))
    };
    if builds_stock {
        cargo()?;
        keep(&built.stock)?;
    }
    apply(workspace, patch, &sources, MOST_LINES)?;
    cargo()?;
    keep(&built.patched)
}

/// Downloads the sources of `packages`. Returns the folder of cargo's registry that contains them.
fn download(root: &Path, packages: &[(&str, &str)]) -> Result<PathBuf> {
    let stub = root.join("stub");
    fs::create_dir_all(&stub)?;
    let mut manifest = "[workspace]\n[package]\nname = \"stub\"\nversion = \"0.0.0\"\n[lib]\n\
                        path = \"stub.rs\"\n[dependencies]\n"
        .to_owned();
    for (package, version) in packages {
        writeln!(manifest, "{package} = \"={version}\"")?;
    }
    fs::write(stub.join("Cargo.toml"), manifest)?;
    fs::write(stub.join("stub.rs"), "")?;
    Program::cargo(&stub, "fetch --quiet").run_aside()?;
    // A package without a library is downloaded, but no package of the metadata; its folder is beside the other's.
    let metadata = Program::cargo(&stub, "metadata --quiet --format-version 1").output()?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let (library, version) = packages.first().context("a patch has packages")?;
    let all = metadata["packages"].as_array().into_iter().flatten();
    let mut found = all.filter(|it| it["name"] == *library && it["version"] == *version);
    let path = found.find_map(|found| found["manifest_path"].as_str());
    let path = path.with_context(|| format!("cargo did not download {library} {version}"))?;
    let folder = Path::new(path).ancestors().nth(2).context("a registry has a folder")?;
    Ok(folder.to_owned())
}

/// Copies the unpatched sources of a package.
fn copy_package(from: &Path, to: &Path) -> Result<()> {
    copy(from, to)?;
    // Otherwise cargo takes the copy for a member of the workspace around it.
    let manifest = to.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    fs::write(manifest, text + "\n[workspace]\n").context("cannot write a manifest")
}
