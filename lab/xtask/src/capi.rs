//! `cargo xtask capi`: builds librxo and librxo-trace and installs them as C programs expect them: headers,
//! shared and static libraries, and the files for `pkg-config` and CMake.
//!
//! The installed files find each other by their places, so the folder may be moved. As packagers expect,
//! `DESTDIR` is put before the prefix.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::UsageError;
use crate::sh::Program;
use crate::workspace::Workspace;

/// The libraries: name, features of the crate, and description.
const LIBRARIES: [(&str, &str, &str); 2] = [
    ("rxo", "", "Receive offload in user space"),
    (
        "rxo-trace",
        "--features rxo-capi/trace",
        "Receive offload in user space, with studies of captures",
    ),
];

/// Builds in release and installs below `--prefix DIR`, and `DESTDIR` before it.
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
    let folder = below(std::env::var_os("DESTDIR").as_deref(), &prefix);
    install_released(&Workspace::load()?, &folder)?;
    println!("installed below {}", folder.display());
    Ok(())
}

/// Builds in release and installs below `prefix`.
///
/// # Errors
/// As for [`install`].
pub(crate) fn install_released(workspace: &Workspace, prefix: &Path) -> Result<()> {
    let build = |features: &str| {
        let command = format!("build --quiet --release -p rxo-capi --lib {features}");
        Program::cargo(&workspace.root, &command)
    };
    install(workspace, build, "release", prefix)
}

/// Returns the folder for files of `prefix`, which is absolute: the same path below `destdir`, if there is one.
pub(crate) fn below(destdir: Option<&OsStr>, prefix: &Path) -> PathBuf {
    match destdir.filter(|folder| !folder.is_empty()) {
        Some(destdir) => Path::new(destdir).join(prefix.strip_prefix("/").unwrap_or(prefix)),
        None => prefix.to_owned(),
    }
}

/// Runs `build` with the features of each library, and installs what it puts into `built` of the target directory.
///
/// # Errors
/// A library does not build, or `prefix` cannot be written.
pub(crate) fn install(
    workspace: &Workspace,
    build: impl Fn(&str) -> Program,
    built: &str,
    prefix: &Path,
) -> Result<()> {
    let built = workspace.target.join(built);
    let capi = workspace.root.join("capi");
    let lib = prefix.join("lib");
    for (name, features, about) in LIBRARIES {
        build(features).run()?;
        let header = format!("include/{name}.h");
        copy(&capi.join(&header), &prefix.join(&header))?;
        copy(&built.join("librxo_c.a"), &lib.join(format!("lib{name}.a")))?;
        let versioned = format!("lib{name}.so.1");
        copy(&built.join("librxo_c.so"), &lib.join(&versioned))?;
        link(&versioned, &lib.join(format!("lib{name}.so")))?;
        let from = capi.join("install/rxo.pc.in");
        fill(
            &from,
            &lib.join(format!("pkgconfig/{name}.pc")),
            &[("@NAME@", name), ("@ABOUT@", about)],
        )?;
    }
    for name in ["rxo-config.cmake", "rxo-config-version.cmake"] {
        fill(&capi.join("install").join(name), &lib.join("cmake/rxo").join(name), &[])?;
    }
    Ok(())
}

/// Makes `path` a link to `target`, also if it exists.
fn link(target: &str, path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => symlink(target, path).with_context(|| format!("{}", path.display())),
    }
}

/// Writes `template` to the file `to`, with `values` and the version in place of their names.
fn fill(template: &Path, to: &Path, values: &[(&str, &str)]) -> Result<()> {
    let text = fs::read_to_string(template).with_context(|| format!("{}", template.display()))?;
    let text = text.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    let text = values.iter().fold(text, |text, (name, value)| text.replace(name, value));
    fs::create_dir_all(folder_of(to)?)?;
    fs::write(to, text).with_context(|| format!("{}", to.display()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packager_gets_the_prefix_below_its_own_folder() {
        let usr = Path::new("/usr");
        assert_eq!(below(Some(OsStr::new("/build/root")), usr), Path::new("/build/root/usr"));
        assert_eq!(below(Some(OsStr::new("")), usr), usr);
        assert_eq!(below(None, usr), usr);
    }
}
