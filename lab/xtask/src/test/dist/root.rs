//! A folder that serves as the root of a system for dpkg: it has dpkg's database, a shell, and a fake systemd
//! that only records its arguments. There are no libraries, and programs in it have no network.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::dist::{Package, Place};
use crate::sh::Program;

/// The root folder. It is kept if a test fails, so that a developer can inspect it.
pub(super) struct Root(PathBuf);

/// systemd's programs, replaced by scripts that write their arguments into [`ASKED`].
const FAKES: [&str; 2] = ["systemctl", "deb-systemd-invoke"];
const ASKED: &str = "run/asked";
/// The busybox programs that the root has.
const APPLETS: [&str; 2] = ["sh", "true"];

impl Root {
    /// Makes the root in a folder below `target`.
    pub(super) fn make(place: &Place) -> Result<Self> {
        let root = Self(place.target.join("dist-root/system"));
        if root.0.exists() {
            fs::remove_dir_all(&root.0).with_context(|| format!("{}", root.0.display()))?;
        }
        for folder in
            ["var/lib/dpkg/info", "var/lib/dpkg/updates", "run/systemd/system", "bin", "tmp", "etc"]
        {
            fs::create_dir_all(root.path(folder))?;
        }
        fs::write(root.path("var/lib/dpkg/status"), "")?;
        // dpkg removes folders that become empty; this file keeps `etc` from becoming so.
        fs::write(root.path("etc/hostname"), "clean\n")?;
        fs::copy("/bin/busybox", root.path("bin/busybox")).context("busybox")?;
        for applet in APPLETS {
            symlink("busybox", root.path("bin").join(applet))?;
        }
        for name in FAKES {
            let path = root.path("bin").join(name);
            fs::write(&path, format!("#!/bin/sh\necho \"$*\" >> /{ASKED}\n"))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        fs::write(root.path(ASKED), "")?;
        Ok(root)
    }

    pub(super) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.join(path)
    }

    /// Runs dpkg on this root.
    pub(super) fn dpkg(&self, arguments: &[&str]) -> Result<()> {
        let root = format!("--root={}", self.0.display());
        let (log, database) = ("--log=/dev/null", "--force-unsafe-io");
        let arguments = [&[root.as_str(), log, database], arguments].concat();
        // dpkg searches for its helper programs in this path, whatever the user's `PATH` is.
        let dpkg = Program::new(&self.0, "dpkg", arguments).env("LC_ALL", "C");
        dpkg.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").run()
    }

    /// Runs the installed program inside the root, without network and in its own process namespace. Returns
    /// its output.
    pub(super) fn rxo(&self, arguments: &[&str]) -> Result<String> {
        let root = self.0.to_string_lossy();
        let inside = ["--net", "--pid", "--mount", "--fork", "chroot", &root, "/usr/bin/rxo"];
        Program::new(&self.0, "unshare", inside.iter().chain(arguments)).output()
    }

    /// Checks that every file of `package` is as it was packed, and that dpkg finds no difference.
    pub(super) fn has(&self, package: &Package) -> Result<()> {
        for file in &package.files {
            let path = self.path(&file.path);
            let about = fs::metadata(&path).with_context(|| format!("{}", path.display()))?;
            let mode = if file.is_program { 0o755 } else { 0o644 };
            let seen = (about.mode() & 0o7777, about.uid(), about.gid());
            ensure!(seen == (mode, 0, 0), "{} has mode and owner {seen:?}", file.path);
            ensure!(fs::read(&path)? == file.content, "{} is not as packed", file.path);
        }
        self.dpkg(&["--verify", "rxo"])
    }

    /// Checks that the package's scripts called systemd exactly with `expected` since the last check.
    pub(super) fn says(&self, expected: &[&str]) -> Result<()> {
        let asked = fs::read_to_string(self.path(ASKED))?;
        let lines: Vec<&str> =
            asked.lines().map(|line| line.strip_prefix("--system ").unwrap_or(line)).collect();
        ensure!(lines == expected, "systemd was asked {lines:?} instead of {expected:?}");
        Ok(fs::write(self.path(ASKED), "")?)
    }

    /// Returns all files except dpkg's database: path, mode, owner, and size or link target, in order.
    pub(super) fn tree(&self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let about = fs::symlink_metadata(&path)?;
                let name = path.strip_prefix(&self.0)?;
                if name == OsStr::new("var/lib/dpkg") {
                    continue;
                }
                let content = if about.is_dir() {
                    folders.push(path.clone());
                    String::new()
                } else if about.is_symlink() {
                    fs::read_link(&path)?.display().to_string()
                } else {
                    about.len().to_string()
                };
                let (mode, owner) = (about.mode(), about.uid());
                lines.push(format!("{} {mode:o} {owner} {content}", name.display()));
            }
        }
        lines.sort();
        Ok(lines)
    }

    pub(super) fn remove(self) -> Result<()> {
        let folder = self.0.parent().context("a root is in a folder")?;
        fs::remove_dir_all(folder).with_context(|| format!("{}", folder.display()))
    }
}
