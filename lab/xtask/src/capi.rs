//! `cargo xtask capi`: builds librxo and installs it as C programs expect it: header, both libraries, and the
//! file for `pkg-config`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::UsageError;
use crate::sh::Program;
use crate::workspace::Workspace;

const NAME: &str = "librxo.so.0";

/// Builds in release and installs below `--prefix DIR`.
///
/// # Errors
/// There are other arguments, the library does not build, or the folder cannot be written.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [flag, prefix] = arguments else {
        bail!(UsageError("capi: give --prefix DIR, such as --prefix /usr/local".to_owned()));
    };
    if flag != "--prefix" || prefix.is_empty() {
        bail!(UsageError(format!("capi {flag}: give --prefix DIR")));
    }
    let prefix = std::path::absolute(prefix)?;
    let workspace = Workspace::load()?;
    let build = Program::cargo(&workspace.root, "build --quiet --release -p rxo-capi");
    install(&workspace, build, "release", &prefix)?;
    println!("installed below {}", prefix.display());
    Ok(())
}

/// Runs `build`, and installs the libraries that it puts into `folder` of the target directory.
///
/// # Errors
/// The library does not build, or `prefix` cannot be written.
pub(crate) fn install(
    workspace: &Workspace,
    build: Program,
    folder: &str,
    prefix: &Path,
) -> Result<()> {
    build.run()?;
    let built = workspace.target.join(folder);
    let capi = workspace.root.join("capi");
    let lib = prefix.join("lib");
    copy(&capi.join("include/rxo.h"), &prefix.join("include/rxo.h"))?;
    copy(&built.join("librxo_c.a"), &lib.join("librxo.a"))?;
    copy(&built.join("librxo_c.so"), &lib.join(NAME))?;
    let link = lib.join("librxo.so");
    match fs::remove_file(&link) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => symlink(NAME, &link).with_context(|| format!("{}", link.display()))?,
    }
    let template = capi.join("rxo.pc.in");
    let text = fs::read_to_string(&template).with_context(|| format!("{}", template.display()))?;
    let text = text.replace("@PREFIX@", &prefix.to_string_lossy());
    let path = lib.join("pkgconfig/rxo.pc");
    fs::create_dir_all(folder_of(&path)?)?;
    fs::write(&path, text.replace("@VERSION@", env!("CARGO_PKG_VERSION")))
        .with_context(|| format!("{}", path.display()))
}

/// Copies by a rename: a running program may have the old library open, so the file must not be overwritten
/// in place.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(folder_of(to)?)?;
    let new = PathBuf::from(format!("{}.new", to.display()));
    fs::copy(from, &new).with_context(|| format!("{} to {}", from.display(), new.display()))?;
    fs::rename(&new, to).with_context(|| format!("{}", to.display()))
}

fn folder_of(path: &Path) -> Result<&Path> {
    path.parent().context("a file is in a folder")
}
