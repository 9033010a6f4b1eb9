//! Tests librxo from C programs: installed, compiled with every warning as an error, run alone, under
//! valgrind, and with the compiler's sanitizers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::report::Report;
use super::steps::Scene;
use crate::sh::Program;
use crate::{apt, capi};

/// Programs to compile and run, below `capi/`.
const PROGRAMS: &[&str] = &["examples/tunnel.c", "tests/misuse.c"];

const WARNINGS: &[&str] = &["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror"];
const SANITIZERS: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
const MEMCHECK: &[&str] = &["--quiet", "--error-exitcode=9", "--leak-check=full"];

/// Builds and installs librxo, and runs all programs.
///
/// # Errors
/// A package is missing, a program fails, or the ABI differs from `abi.txt`.
pub(super) fn run(scene: &Scene, report: &mut Report) -> Result<()> {
    apt::ensure(&[apt::CXX, apt::VALGRIND, apt::PKG_CONFIG])?;
    let kit = Kit::install(scene)?;
    kit.compare_abi()?;
    for source in PROGRAMS {
        let program = kit.compile(source, "", &["-Wpedantic"], &kit.flags(&["rxo"])?)?;
        kit.run(&program, &[])?;
        let inside: Vec<&str> = MEMCHECK.iter().copied().chain([program.as_str()]).collect();
        kit.run("valgrind", &inside)?;
        let program = kit.compile(source, "-sanitized", SANITIZERS, &kit.r#static()?)?;
        kit.run(&program, &[])?;
    }
    let header = kit.path("include/rxo.h");
    kit.run("g++", &["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++", &header])?;
    report.note(format!("{} programs in C ran with librxo", PROGRAMS.len()));
    Ok(())
}

/// The installation of librxo that this step tests.
pub(super) struct Kit {
    root: PathBuf,
    prefix: PathBuf,
}

impl Kit {
    pub(super) fn install(scene: &Scene) -> Result<Self> {
        let prefix = scene.workspace.target.join("capi");
        let build = scene.checked("build --quiet", "--workspace --lib");
        capi::install(&scene.workspace, build, "ci", &prefix)?;
        Ok(Self { root: scene.workspace.root.join("capi"), prefix })
    }

    fn program<A: AsRef<std::ffi::OsStr>>(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Program {
        Program::new(&self.root, program, arguments)
            .env("LD_LIBRARY_PATH", &self.prefix.join("lib").to_string_lossy())
    }

    pub(super) fn run(&self, program: &str, arguments: &[&str]) -> Result<()> {
        self.program(program, arguments).run()
    }

    /// Returns the compiler flags of `libraries` from `pkg-config`.
    pub(super) fn flags(&self, libraries: &[&str]) -> Result<Vec<String>> {
        let path = self.prefix.join("lib/pkgconfig");
        let arguments = ["--cflags", "--libs"].iter().chain(libraries);
        let said = Program::new(&self.root, "pkg-config", arguments)
            .env("PKG_CONFIG_PATH", &path.to_string_lossy())
            .output()?;
        Ok(said.split_whitespace().map(str::to_owned).collect())
    }

    /// Returns the flags for static linking, with the archive instead of the shared library, as docs/c.md
    /// shows.
    fn r#static(&self) -> Result<Vec<String>> {
        let flags = self.flags(&["--static", "rxo"])?;
        Ok(flags.into_iter().map(|flag| flag.replace("-lrxo", "-l:librxo.a")).collect())
    }

    /// Returns the path of a file below the prefix.
    pub(super) fn path(&self, file: &str) -> String {
        self.prefix.join(file).to_string_lossy().into_owned()
    }

    /// Compiles one source file, and returns the path of the program.
    pub(super) fn compile(
        &self,
        source: &str,
        suffix: &str,
        extra: &[&str],
        library: &[String],
    ) -> Result<String> {
        let stem = Path::new(source).file_stem().context("a source has a name")?;
        let output = self.path(&format!("{}{suffix}", stem.to_string_lossy()));
        let own = WARNINGS.iter().chain(extra).copied().chain([source, "-o", &output]);
        self.program("cc", own.chain(library.iter().map(String::as_str))).run()?;
        Ok(output)
    }

    /// Compares symbols and struct layouts with `abi.txt`, so that a change of the ABI appears as a change of
    /// a file.
    fn compare_abi(&self) -> Result<()> {
        let library = self.path("lib/librxo.so.0");
        let symbols =
            Program::new(&self.root, "nm", ["-D", "--defined-only", &library]).output()?;
        let mut found: Vec<String> =
            symbols.lines().filter_map(|line| line.rsplit(' ').next()).map(str::to_owned).collect();
        found.sort();
        let program = self.compile("tests/abi.c", "", &[], &self.flags(&["rxo"])?)?;
        found.push(self.program(&program, [""; 0]).output()?);
        let found = found.join("\n");
        let kept = self.root.join("abi.txt");
        if fs::read_to_string(&kept).unwrap_or_default() == found {
            return Ok(());
        }
        let new = self.prefix.join("abi.txt");
        fs::write(&new, found)?;
        bail!(
            "the ABI is not that of {}: see {}; if the change is meant, copy it there, and raise the \
             number in {} if a program that was compiled before would break",
            kept.display(),
            new.display(),
            "librxo.so.0"
        )
    }
}
