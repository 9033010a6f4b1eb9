//! The files to pack: content, path and mode.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::Place;
use super::build::Built;
use super::debian;

/// A file to be packed.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// Its path, from the root of the system or of the archive.
    pub(crate) path: String,
    pub(crate) is_program: bool,
    pub(crate) content: Vec<u8>,
}

impl File {
    fn new(path: impl Into<String>, content: Vec<u8>) -> Self {
        Self { path: path.into(), is_program: false, content }
    }
}

/// Writes `files` below `folder`, with modes that do not depend on the user's umask.
///
/// # Errors
/// If a file or folder cannot be written.
pub(crate) fn write(files: &[File], folder: &Path) -> Result<()> {
    let readable = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .with_context(|| format!("cannot set the mode of {}", path.display()))
    };
    for file in files {
        let path = folder.join(&file.path);
        let above = path.parent().context("a file is in a folder")?;
        fs::create_dir_all(above).with_context(|| format!("{}", above.display()))?;
        fs::write(&path, &file.content).with_context(|| format!("{}", path.display()))?;
        readable(&path, if file.is_program { 0o755 } else { 0o644 })?;
        for folder in above.ancestors().take_while(|above| above.starts_with(folder)) {
            readable(folder, 0o755)?;
        }
    }
    Ok(())
}

/// Returns the files of the Debian package, at the paths that Debian prescribes.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn of_package(place: &Place, built: &Built, notices: &str) -> Result<Vec<File>> {
    let read = |path: &str| read(&place.root.join(path));
    let doc = "usr/share/doc/rxo";
    let mut files = vec![
        program(built, "usr/bin/rxo")?,
        File::new("usr/lib/systemd/system/rxo@.service", read(UNIT)?),
        File::new(debian::SETTINGS, read("packaging/debian/default")?),
        File::new("usr/share/lintian/overrides/rxo", read("packaging/debian/lintian-overrides")?),
        File::new(format!("{doc}/copyright"), debian::copyright(place)?),
        File::new(format!("{doc}/changelog.gz"), gzip(&read("CHANGELOG.md")?)?),
        File::new(format!("{doc}/changelog.Debian.gz"), gzip(&debian::changelog(place)?)?),
        File::new(format!("{doc}/third-party.gz"), gzip(notices.as_bytes())?),
        File::new(format!("{doc}/README.md.gz"), gzip(&read("README.md")?)?),
    ];
    for (name, shell) in SHELLS {
        files.push(File::new(*shell, completions(built, name)?));
    }
    for (name, page) in pages(built)? {
        files.push(File::new(format!("usr/share/man/man1/{name}.gz"), gzip(&page)?));
    }
    Ok(files)
}

/// Returns the files of the archive.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn of_archive(place: &Place, built: &Built, notices: &str) -> Result<Vec<File>> {
    let mut files = vec![program(built, "rxo")?, File::new("THIRD-PARTY", notices.into())];
    for path in [UNIT, "README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
        files.push(File::new(name, read(&place.root.join(path))?));
    }
    for (name, _) in SHELLS {
        files.push(File::new(format!("completions/{name}"), completions(built, name)?));
    }
    for (name, page) in pages(built)? {
        files.push(File::new(format!("man/{name}"), page));
    }
    Ok(files)
}

const UNIT: &str = "packaging/rxo@.service";

/// Completion files, and the path at which each shell searches for those of packages.
const SHELLS: &[(&str, &str)] = &[
    ("rxo.bash", "usr/share/bash-completion/completions/rxo"),
    ("_rxo", "usr/share/zsh/vendor-completions/_rxo"),
    ("rxo.fish", "usr/share/fish/vendor_completions.d/rxo.fish"),
];

fn program(built: &Built, path: &str) -> Result<File> {
    Ok(File { is_program: true, ..File::new(path, read(&built.program)?) })
}

fn completions(built: &Built, name: &str) -> Result<Vec<u8>> {
    read(&built.pages.join("completions").join(name))
}

/// Returns the manual pages, sorted by name.
fn pages(built: &Built) -> Result<Vec<(String, Vec<u8>)>> {
    let folder = built.pages.join("man");
    let mut pages = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        pages.push((name, read(&path)?));
    }
    pages.sort();
    Ok(pages)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Compresses `bytes` with no file name and no time in the header.
fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = Command::new("gzip")
        .arg("-9n")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run gzip")?;
    let mut input = gzip.stdin.take().context("a piped input is there")?;
    let bytes = bytes.to_vec();
    // A thread writes the input, because gzip may produce output before it has read everything.
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = gzip.wait_with_output()?;
    let written = writer.join().map_err(|_| anyhow::anyhow!("writing to gzip failed"))?;
    written.context("gzip does not read")?;
    ensure!(output.status.success(), "gzip failed ({})", output.status);
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_readable_by_all_and_only_programs_run() {
        let folder = std::env::temp_dir().join(format!("rxo-files-{}", std::process::id()));
        let program = File { is_program: true, ..File::new("usr/bin/a", b"a".into()) };
        write(&[program, File::new("b", b"b".into())], &folder).unwrap();
        let mode =
            |path: &str| fs::metadata(folder.join(path)).unwrap().permissions().mode() & 0o7777;
        let modes = ["", "usr", "usr/bin", "usr/bin/a", "b"].map(mode);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(modes, [0o755, 0o755, 0o755, 0o755, 0o644]);
    }

    #[test]
    fn compressed_bytes_have_no_time() {
        let packed = gzip(&vec![7; 1 << 20]).unwrap();
        assert_eq!(packed[..8], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]);
        assert_eq!(packed, gzip(&vec![7; 1 << 20]).unwrap());
    }
}
