//! Runs a wheel for another processor under QEMU, in that processor's Python from Debian.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::super::report::Report;
use crate::apt;
use crate::dist::{Architecture, Place};
use crate::sh::{self, Program};

/// Installs `wheel`, and gets a first decision as on this machine.
///
/// # Errors
/// The wheel does not work; or, under `CI=true`, the emulator or Python is missing.
pub(super) fn run(
    place: &Place,
    other: &Architecture,
    wheel: &Path,
    report: &mut Report,
) -> Result<()> {
    match apt::ensure(&[apt::QEMU_USER]).and_then(|()| python(place, other)) {
        Ok(root) => decides(place, other, &root, &wheel.to_string_lossy()),
        Err(obstacle) if sh::is_ci() => Err(obstacle),
        Err(obstacle) => {
            report.note(format!("the wheel for {}: not run: {obstacle:#}", other.name));
            Ok(())
        }
    }
}

/// Unpacks Python for `other`, with all that it needs, and returns its root. apt gets lists and a state of its own,
/// so that this system does not learn of another architecture. Needs no privilege.
fn python(place: &Place, other: &Architecture) -> Result<PathBuf> {
    let folder = place.target.join("dist-python").join(other.debian);
    let (root, unpacked) = (folder.join("root"), folder.join("unpacked"));
    if root.exists() {
        return Ok(root);
    }
    // Remains of an interrupted run.
    _ = fs::remove_dir_all(&folder);
    for needed in ["lists/partial", "archives/partial", "unpacked/usr/lib"] {
        fs::create_dir_all(folder.join(needed))?;
    }
    // Since Debian 13 all libraries are below /usr, and the link is in a package on which none depends.
    symlink("usr/lib", unpacked.join("lib"))?;
    fs::write(folder.join("status"), "")?;
    let (debian, here) = (other.debian, folder.display());
    let options = [
        format!("APT::Architecture={debian}"),
        format!("APT::Architectures={debian}"),
        "APT::Sandbox::User=".to_owned(),
        "Debug::NoLocking=true".to_owned(),
        format!("Dir::State={here}"),
        format!("Dir::State::status={here}/status"),
        format!("Dir::Cache={here}"),
    ];
    for command in ["update", "install -y --download-only --no-install-recommends python3-pip"] {
        let arguments = options.iter().flat_map(|option| ["-o", option]).chain(command.split(' '));
        Program::new(&folder, "apt-get", arguments).output().with_context(|| {
            format!("Python for {debian} comes from Debian: make apt-get and its servers available")
        })?;
    }
    for archive in fs::read_dir(folder.join("archives"))? {
        let archive = archive?.path();
        if archive.is_file() {
            Program::new(&folder, "dpkg-deb", [Path::new("-x"), &archive, &unpacked]).output()?;
        }
    }
    // The rename comes last, so that the root is complete or absent.
    fs::rename(&unpacked, &root)?;
    Ok(root)
}

fn decides(place: &Place, other: &Architecture, root: &Path, wheel: &str) -> Result<()> {
    let site = root.with_file_name("site");
    _ = fs::remove_dir_all(&site);
    let [site, python, root] = [site, root.join("usr/bin/python3"), root.to_owned()]
        .map(|path| path.to_string_lossy().into_owned());
    let emulator = format!("qemu-{}", other.name);
    let emulated = ["-L", &root, &python];
    let install = ["-m", "pip", "install", "--quiet", "--no-index", "--target", &site, wheel];
    for arguments in [install.as_slice(), &["tests/fresh.py"]] {
        Program::new(&place.root.join("py"), &emulator, emulated.iter().chain(arguments))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONPATH", &site)
            .run()?;
    }
    Ok(())
}
