//! The Debian package: its description and scripts, and packing it with dpkg-deb.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Place;
use super::files::{File, write};
use crate::sh::Program;

/// The settings file, which dpkg preserves if the user has changed it.
pub(crate) const SETTINGS: &str = "etc/default/rxo";

/// The maintainer of the package: a placeholder, like the repository in Cargo.toml.
const MAINTAINER: &str = "The rxo maintainers <maintainers@example.com>";

/// A Debian package before it is packed.
#[derive(Clone)]
pub(crate) struct Package {
    pub(crate) files: Vec<File>,
    /// Version of the sources, a hyphen, and the revision of the package.
    pub(crate) version: String,
    /// Debian's name for the processor.
    pub(crate) architecture: &'static str,
    pub(crate) scripts: Scripts,
}

/// Scripts that dpkg runs before and after it installs or removes, by name.
#[derive(Clone)]
pub(crate) struct Scripts(Vec<File>);

impl Scripts {
    /// Reads the scripts from `packaging/debian`.
    pub(super) fn read(place: &Place) -> Result<Self> {
        let read = |name: &str| {
            let path = place.root.join("packaging/debian").join(name);
            let content = fs::read(&path).with_context(|| format!("{}", path.display()))?;
            Ok(File { path: format!("DEBIAN/{name}"), is_program: true, content })
        };
        Ok(Self(["postinst", "prerm", "postrm"].into_iter().map(read).collect::<Result<_>>()?))
    }
}

impl Package {
    /// Packs into `folder`. Returns the path of the package.
    ///
    /// # Errors
    /// A file cannot be written, or dpkg-deb fails.
    pub(crate) fn pack(&self, place: &Place, folder: &Path) -> Result<PathBuf> {
        let stage = place.target.join("dist-debian");
        if stage.exists() {
            fs::remove_dir_all(&stage).with_context(|| format!("{}", stage.display()))?;
        }
        write(&self.files, &stage)?;
        let sums = md5sums(&self.files, &stage)?;
        write(&self.scripts.0, &stage)?;
        let about = |name: &str, text: String| File {
            path: format!("DEBIAN/{name}"),
            is_program: false,
            content: text.into_bytes(),
        };
        let settings = format!("/{SETTINGS}\n");
        let control = self.control();
        let files =
            [about("control", control), about("conffiles", settings), about("md5sums", sums)];
        write(&files, &stage)?;
        let output = folder.join(self.file_name());
        let (from, to) = (stage.to_string_lossy(), output.to_string_lossy());
        let arguments = ["--root-owner-group", "-Zxz", "--build", &from, &to];
        place
            .program(&place.root, "dpkg-deb", arguments)
            // With several threads xz writes different bytes.
            .env("DPKG_DEB_THREADS_MAX", "1")
            .run_aside()?;
        Ok(output)
    }

    /// Returns the file name of the package.
    pub(crate) fn file_name(&self) -> String {
        format!("rxo_{}_{}.deb", self.version, self.architecture)
    }

    /// Returns the control file. The package has no dependencies, because the program is static.
    fn control(&self) -> String {
        format!(
            "Package: rxo\nVersion: {}\nArchitecture: {}\nMaintainer: {MAINTAINER}\nInstalled-Size: {}\n\
             Section: net\nPriority: optional\nHomepage: {}\n{DESCRIPTION}",
            self.version,
            self.architecture,
            installed_kib(&self.files),
            env!("CARGO_PKG_REPOSITORY"),
        )
    }
}

const DESCRIPTION: &str = "\
Description: TCP receive coalescing in user space
 rxo coalesces the TCP segments that a network interface receives, and gives
 the host one large packet instead of many small ones. It stands between the
 interface and the host as a TAP, takes over the interface's addresses and
 routes for that time, and gives them back however it ends.
 .
 It also shows what coalescing would do to captured traffic, coalesces for
 virtual machines, and serves files over a TCP/IP stack of its own.
";

/// Returns the size in KiB on a disk with blocks of 1 KiB, as Debian's policy defines it: each file rounded
/// up, and 1 for each folder.
fn installed_kib(files: &[File]) -> u64 {
    let mut folders: Vec<&Path> =
        files.iter().flat_map(|file| Path::new(&file.path).ancestors().skip(1)).collect();
    folders.sort();
    folders.dedup();
    let kib = |file: &File| (file.content.len() as u64).div_ceil(1024);
    files.iter().map(kib).sum::<u64>() + folders.len() as u64
}

/// Returns the checksums by which `dpkg --verify` detects changed files. The settings file is left out,
/// because users may change it.
fn md5sums(files: &[File], stage: &Path) -> Result<String> {
    let paths = files.iter().map(|file| file.path.as_str()).filter(|path| *path != SETTINGS);
    let mut paths: Vec<&str> = paths.collect();
    paths.sort_unstable();
    Program::new(stage, "md5sum", paths).output()
}

/// Returns the changelog of the package; the changelog of the sources is a separate file beside it.
pub(super) fn changelog(place: &Place) -> Result<Vec<u8>> {
    let (version, date) = (&place.version, place.date("-R")?);
    let text = format!(
        "rxo ({version}-1) unstable; urgency=medium\n\n  * rxo {version}; changelog.gz has its changes.\n\n \
         -- {MAINTAINER}  {date}\n"
    );
    Ok(text.into_bytes())
}

/// Returns the copyright file in Debian's form: the owner, and the two licences of which the user may choose
/// one.
pub(super) fn copyright(place: &Place) -> Result<Vec<u8>> {
    let path = place.root.join("LICENSE-MIT");
    let mit = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    let owner = mit.lines().find(|line| line.starts_with("Copyright")).unwrap_or("The rxo authors");
    let indented = |line: &str| match line.trim_end() {
        "" => " .\n".to_owned(),
        line => format!(" {line}\n"),
    };
    let text: String = mit.trim_end().lines().map(indented).collect();
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: rxo\nSource: {}\nComment: third-party.gz has the licences of the packages in the program.\n\n\
         Files: *\nCopyright: {}\nLicense: MIT or Apache-2.0\n\n\
         License: MIT\n{text}\nLicense: Apache-2.0\n On Debian systems, the text is in\n \
         /usr/share/common-licenses/Apache-2.0.\n",
        env!("CARGO_PKG_REPOSITORY"),
        owner.trim_start_matches("Copyright").trim_start_matches(" (c)").trim(),
    )
    .into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, bytes: usize) -> File {
        File { path: path.to_owned(), is_program: false, content: vec![0; bytes] }
    }

    #[test]
    fn the_size_counts_blocks_and_folders() {
        // The root, usr, usr/bin and etc.
        assert_eq!(installed_kib(&[file("usr/bin/a", 1025), file("etc/b", 1)]), 2 + 1 + 4);
    }

    #[test]
    fn control_has_a_field_a_line_and_ends_with_the_description() {
        let scripts = Scripts(Vec::new());
        let (version, architecture) = ("1.2.3-1".to_owned(), "amd64");
        let package = Package { files: vec![file("a", 1)], version, architecture, scripts };
        let control = package.control();
        assert!(control.starts_with("Package: rxo\nVersion: 1.2.3-1\nArchitecture: amd64\n"));
        assert!(control.lines().all(|line| line.starts_with(' ') || line.contains(": ")));
        assert!(control.lines().all(|line| line.len() <= 80), "{control}");
        assert!(!control.contains("Depends"), "{control}");
    }
}
