//! `cargo xtask dist`: makes the files of a release: a static program, a Debian package, an archive, and a
//! list of the crates inside.
//!
//! Builds are reproducible, whatever the folder and the day: paths are replaced, times are those of the last
//! commit, lists are sorted. All files are written below `target/dist`. The modules, in the order of the
//! steps:
//!
//! * `build`: the program for an architecture, and its completions and manual pages, which `rxo-pages`
//!   generates from the flags.
//! * `parts`: the crates in the program, as cargo lists them; `sbom` and `notices` are made from this list.
//! * `files`: the files of the package and of the archive, with their places.
//! * `debian` and `archive`: pack these files.
//! * `wheels`: the Python package, in a folder of its own (`--wheels`).

mod archive;
mod build;
mod debian;
mod files;
mod notices;
mod parts;
mod sbom;
pub(crate) mod wheels;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use self::build::Built;
pub(crate) use self::build::cargo_home;
use self::debian::Scripts;
pub(crate) use self::debian::{Package, SETTINGS};
use crate::sh::Program;
use crate::workspace::Workspace;
use crate::{UsageError, apt};

/// A processor for which programs are built.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Architecture {
    /// Its name in file names and in Rust.
    pub(crate) name: &'static str,
    /// Its name in Debian.
    pub(crate) debian: &'static str,
}

/// All supported architectures.
pub(crate) const ARCHITECTURES: &[Architecture] = &[
    Architecture { name: "x86_64", debian: "amd64" },
    Architecture { name: "aarch64", debian: "arm64" },
];

/// Upper limit of the program's size, in bytes.
const MOST_BYTES: u64 = 12_000_000;

/// Folders, time and version that all results share.
#[derive(Clone)]
pub(crate) struct Place {
    /// Folder of the sources.
    pub(crate) root: PathBuf,
    /// The folder in which cargo builds.
    pub(crate) target: PathBuf,
    /// The folder of the results.
    pub(crate) folder: PathBuf,
    /// The folder in which cargo keeps downloads.
    pub(crate) cargo_home: PathBuf,
    /// The timestamp of all files, in seconds since 1970.
    pub(crate) epoch_s: u64,
    pub(crate) version: String,
}

impl Architecture {
    /// Returns the architecture of this machine.
    pub(crate) fn here() -> Result<&'static Self> {
        Self::named(std::env::consts::ARCH)
    }

    fn named(name: &str) -> Result<&'static Self> {
        let found = ARCHITECTURES.iter().find(|one| one.name == name);
        found.with_context(|| {
            let names: Vec<&str> = ARCHITECTURES.iter().map(|one| one.name).collect();
            format!("dist: no architecture {name:?}; there are: {}", names.join(", "))
        })
    }

    /// Returns the compiler's target triple, whose C library (musl) is linked statically.
    pub(crate) fn triple(&self) -> String {
        format!("{}-unknown-linux-musl", self.name)
    }
}

impl Place {
    /// Takes the folders of the workspace, and the time from `SOURCE_DATE_EPOCH` or else from the last
    /// commit.
    ///
    /// # Errors
    /// If neither gives a time.
    pub(crate) fn of(workspace: &Workspace) -> Result<Self> {
        let Workspace { root, target, .. } = workspace;
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(text) => text,
            Err(_) => Program::new(root, "git", ["log", "-1", "--format=%ct"]).output()?,
        };
        let epoch_s = epoch.trim().parse().with_context(|| {
            format!("SOURCE_DATE_EPOCH={:?}: give seconds since 1970", epoch.trim())
        })?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let (root, target) = (root.clone(), target.clone());
        let (folder, cargo_home) = (target.join("dist"), cargo_home());
        Ok(Self { root, target, folder, cargo_home, epoch_s, version })
    }

    /// Returns the timestamp formatted by `date` with the argument `form`.
    fn date(&self, form: &str) -> Result<String> {
        let at = format!("@{}", self.epoch_s);
        let date = Program::new(&self.root, "date", ["-u", "-d", &at, form]).env("LC_ALL", "C");
        Ok(date.output()?.trim().to_owned())
    }

    /// Returns a command that runs with this timestamp as `SOURCE_DATE_EPOCH`.
    fn program<'a>(
        &self,
        folder: &Path,
        program: &str,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Program {
        Program::new(folder, program, arguments)
            .env("SOURCE_DATE_EPOCH", &self.epoch_s.to_string())
            .env("LC_ALL", "C")
    }
}

/// Makes all files for the chosen architectures, or their wheels, and prints the table of the results.
///
/// # Errors
/// There are other arguments, a package or target is missing, or a build fails.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let Chosen { architectures, kinds } = Chosen::parse(arguments)?;
    let place = Place::of(&Workspace::load()?)?;
    if kinds.is_empty() {
        print!("{}", table("target/dist", &make(&place, &architectures)?));
    } else {
        let (made, not_run) = wheels::make(&place, &kinds, &architectures)?;
        print!("{}", table("target/wheels", &made));
        not_run.iter().for_each(|wheel| println!("{wheel}"));
    }
    Ok(())
}

/// The results that the arguments ask for.
#[derive(Debug, Default)]
struct Chosen {
    architectures: Vec<&'static Architecture>,
    /// The kinds of wheels; none for everything but wheels.
    kinds: Vec<&'static wheels::Kind>,
}

impl Chosen {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut chosen = Self::default();
        let mut all_wheels = false;
        let mut arguments = arguments.iter().map(String::as_str);
        while let Some(argument) = arguments.next() {
            let (option, value) = match argument.split_once('=') {
                Some((option, value)) => (option, Some(value)),
                None => (argument, arguments.next()),
            };
            let value = value.unwrap_or_default();
            match option {
                "--architecture" => chosen.architectures.push(
                    Architecture::named(value).map_err(|error| UsageError(format!("{error}")))?,
                ),
                "--wheels" => {
                    chosen.add_wheels(value)?;
                    all_wheels |= value == "all";
                }
                _ => bail!(UsageError(format!(
                    "dist {argument}: no option but --architecture NAME and --wheels KIND"
                ))),
            }
        }
        if chosen.architectures.is_empty() && all_wheels {
            chosen.architectures.extend(ARCHITECTURES);
        } else if chosen.architectures.is_empty() {
            chosen.architectures.push(Architecture::here()?);
        }
        Ok(chosen)
    }

    /// Adds a kind of wheel by its name, or `all`.
    fn add_wheels(&mut self, name: &str) -> Result<()> {
        let found = wheels::KINDS.iter().filter(|kind| name == "all" || kind.name == name);
        let before = self.kinds.len();
        self.kinds.extend(found);
        if self.kinds.len() > before {
            return Ok(());
        }
        let names: Vec<&str> = wheels::KINDS.iter().map(|kind| kind.name).collect();
        bail!(UsageError(format!(
            "dist: no wheels of the kind {name:?}; there are: {}, all",
            names.join(", ")
        )))
    }
}

/// A file that [`make`] wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// Makes all files from scratch, and returns the files in the folder of `place`.
///
/// # Errors
/// A package or target is missing, a build fails, or a program is too large.
pub(crate) fn make(place: &Place, architectures: &[&'static Architecture]) -> Result<Vec<Made>> {
    apt::ensure(&[apt::DPKG])?;
    let folder = &place.folder;
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    for architecture in architectures {
        make_one(place, architecture)?;
    }
    sums(folder)
}

fn make_one(place: &Place, architecture: &'static Architecture) -> Result<()> {
    let built = Built::build(place, architecture)?;
    let bytes = fs::metadata(&built.program)?.len();
    let name = architecture.name;
    ensure!(bytes < MOST_BYTES, "rxo for {name} has {bytes} bytes, and may have {MOST_BYTES}");
    let parts = parts::list(place, architecture)?;
    let sha256 = sha256(&place.root, &built.program)?;
    let stem = format!("rxo-{}-{name}-linux", place.version);
    let sbom = sbom::document(place, &parts, &sha256)?;
    fs::write(place.folder.join(format!("{stem}.cdx.json")), sbom)?;
    let notices = notices::text(&parts)?;
    archive::pack(place, &stem, &files::of_archive(place, &built, &notices)?)?;
    package_of(place, architecture, &built, &notices)?.pack(place, &place.folder)?;
    Ok(())
}

fn package_of(
    place: &Place,
    architecture: &'static Architecture,
    built: &Built,
    notices: &str,
) -> Result<Package> {
    Ok(Package {
        files: files::of_package(place, built, notices)?,
        version: format!("{}-1", place.version),
        architecture: architecture.debian,
        scripts: Scripts::read(place)?,
    })
}

/// Returns the Debian package that [`make`] packed for `architecture`.
///
/// # Errors
/// If a file of the package cannot be read.
pub(crate) fn package(place: &Place, architecture: &'static Architecture) -> Result<Package> {
    let notices = notices::text(&parts::list(place, architecture)?)?;
    package_of(place, architecture, &Built::of(place, architecture), &notices)
}

/// Returns the path of the program that [`make`] packed for `architecture`.
pub(crate) fn program(place: &Place, architecture: &'static Architecture) -> PathBuf {
    Built::of(place, architecture).program
}

/// Returns the SHA-256 of a file, in hexadecimal digits.
fn sha256(root: &Path, file: &Path) -> Result<String> {
    let said = Program::new(root, "sha256sum", [file]).output()?;
    Ok(said.split_whitespace().next().context("sha256sum says nothing")?.to_owned())
}

/// Writes SHA256SUMS for the files in `folder`, and returns the files with their sums.
fn sums(folder: &Path) -> Result<Vec<Made>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let mut made = Vec::new();
    for name in names {
        let path = folder.join(&name);
        made.push(Made { sha256: sha256(folder, &path)?, bytes: fs::metadata(&path)?.len(), name });
    }
    let lines: String = made.iter().map(|one| format!("{}  {}\n", one.sha256, one.name)).collect();
    fs::write(folder.join("SHA256SUMS"), lines)?;
    Ok(made)
}

fn table(folder: &str, made: &[Made]) -> String {
    let row = |one: &Made| format!("{:<72}{:>12}  {}\n", one.name, one.bytes, one.sha256);
    let rows: String = made.iter().map(row).collect();
    format!("{folder:<72}{:>12}  sha256\n{rows}", "bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(line: &str) -> Result<Vec<&'static str>> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let chosen = Chosen::parse(&arguments)?;
        let kinds = chosen.kinds.iter().map(|kind| kind.name);
        Ok(chosen.architectures.iter().map(|one| one.name).chain(kinds).collect())
    }

    #[test]
    fn architectures_are_chosen_by_name() {
        assert_eq!(names("").unwrap(), [std::env::consts::ARCH]);
        let both = "--architecture x86_64 --architecture=aarch64";
        assert_eq!(names(both).unwrap(), ["x86_64", "aarch64"]);
        for wrong in ["--architecture", "--architecture=vax", "--fast", "--wheels", "--wheels eggs"]
        {
            assert!(names(wrong).unwrap_err().is::<UsageError>(), "{wrong}");
        }
    }

    #[test]
    fn wheels_are_chosen_by_kind() {
        let here = std::env::consts::ARCH;
        assert_eq!(names("--wheels manylinux").unwrap(), [here, "manylinux"]);
        let all = "--architecture aarch64 --wheels=all";
        assert_eq!(names(all).unwrap(), ["aarch64", "manylinux", "musllinux"]);
        let all = ["x86_64", "aarch64", "manylinux", "musllinux"];
        assert_eq!(names("--wheels all").unwrap(), all);
    }

    #[test]
    fn sums_are_those_of_the_files_without_folders() {
        let folder = std::env::temp_dir().join(format!("rxo-sums-{}", std::process::id()));
        fs::create_dir_all(folder.join("below")).unwrap();
        fs::write(folder.join("b"), "").unwrap();
        fs::write(folder.join("a"), "abc").unwrap();
        let made = sums(&folder).unwrap();
        let seen: Vec<_> = made.iter().map(|one| (one.name.as_str(), one.bytes)).collect();
        assert_eq!(seen, [("a", 3), ("b", 0)]);
        // FIPS 180-2, appendix B.1.
        assert!(made[0].sha256.starts_with("ba7816bf8f01cfea"), "{made:?}");
        let check = Program::new(&folder, "sha256sum", ["--check", "--quiet", "SHA256SUMS"]);
        check.output().unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
