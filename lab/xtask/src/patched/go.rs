//! wireguard-go with librxo in place of its own coalescing.

use std::fs;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{apply, copy};
use crate::capi;
use crate::sh::{self, Program};
use crate::tunnels::WIREGUARD_GO;
use crate::workspace::Workspace;

/// The greatest number of lines that the patch may add: those of the other programs call Rust, and this one calls C.
const MOST_LINES: usize = 77;

/// Builds the patched program below `root`, and puts it into the folder `bin`.
pub(super) fn build(workspace: &Workspace, root: &Path, bin: &Path) -> Result<()> {
    ensure!(sh::has_program("go"), "go is not in PATH: install Go 1.23 or newer");
    let librxo = root.join("librxo");
    capi::install_released(workspace, &librxo)?;
    let (package, version) = WIREGUARD_GO;
    let module = format!("{package}@{version}");
    let downloaded = Program::new(root, "go", ["mod", "download", "-json", &module]).output()?;
    let downloaded: Value = serde_json::from_str(&downloaded)?;
    let folder = downloaded["Dir"].as_str().context("go names no folder of the module")?;
    let sources = root.join("sources/wireguard-go");
    copy(Path::new(folder), &sources)?;
    apply(workspace, "wireguard-go", &sources, MOST_LINES)?;
    let [lib, output] =
        [librxo.join("lib"), bin.join("wireguard")].map(|it| it.display().to_string());
    // Go's cache of builds does not notice that an installed header has changed.
    let header = fs::read_to_string(librxo.join("include/rxo.h"))?;
    let header = BuildHasherDefault::<DefaultHasher>::new().hash_one(header);
    Program::new(&sources, "go", ["build", "-o", &output, "."])
        .env("CGO_ENABLED", "1")
        .env("CGO_CFLAGS", &format!("-O2 -DRXO_HEADER={header}"))
        .env("CGO_LDFLAGS", &format!("-Wl,-rpath,{lib}"))
        .env("PKG_CONFIG_PATH", &format!("{lib}/pkgconfig"))
        .run_aside()
}
