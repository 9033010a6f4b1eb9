//! Installs other WireGuard programs, with which rxo-tunnel is tested and compared.
//!
//! The ordinary clients download fixed versions from their registries. The programs are built once, below the
//! target directory, which takes some minutes.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::sh::{self, Program};
use crate::workspace::Workspace;

/// The package of WireGuard's own implementation in Go, and its version.
pub(crate) const WIREGUARD_GO: (&str, &str) =
    ("golang.zx2c4.com/wireguard", "v0.0.0-20260522210424-ecfc5a8d5446");

/// Each program's package, its version, and the client that installs it.
const PROGRAMS: [(&str, &str, Client); 3] = [
    (WIREGUARD_GO.0, WIREGUARD_GO.1, Client::Go),
    ("boringtun-cli", "0.7.1", Client::Cargo),
    ("gotatun-cli", "0.10.2", Client::Cargo),
];

#[derive(Clone, Copy)]
enum Client {
    Go,
    Cargo,
}

/// Installs the programs that are missing. Returns the folder of their files.
///
/// # Errors
/// A client is missing, or a program cannot be downloaded or built.
pub(crate) fn ensure(workspace: &Workspace) -> Result<PathBuf> {
    let root = workspace.target.join("tunnels");
    for (package, version, client) in PROGRAMS {
        let name = package.rsplit('/').next().unwrap_or(package);
        let installed = root.join(format!("{name}-{version}"));
        if installed.exists() {
            continue;
        }
        eprintln!("installing {package} {version} below {}", root.display());
        let folder = root.display();
        match client {
            Client::Go if !sh::has_program("go") => {
                bail!("{package} is built with Go, which is not in PATH: install Go 1.23 or newer")
            }
            Client::Go => {
                Program::new(&workspace.root, "go", ["install", &format!("{package}@{version}")])
                    .env("GOBIN", &format!("{folder}/bin"))
                    .run_aside()?
            }
            Client::Cargo => Program::cargo(
                &workspace.root,
                &format!("install --quiet --locked {package} --version ={version} --root {folder}"),
            )
            .run_aside()?,
        }
        fs::write(&installed, "")
            .with_context(|| format!("cannot write {}", installed.display()))?;
    }
    Ok(root.join("bin"))
}
