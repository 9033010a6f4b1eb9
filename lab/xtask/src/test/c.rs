//! Tests librxo from C programs: installed, compiled with every warning as an error, run alone, under
//! valgrind, and with the compiler's sanitizers; and from a program in Go.

use std::fs;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::report::Report;
use super::steps::Scene;
use crate::sh::{self, Program};
use crate::{apt, capi};

/// Programs to compile and run, below `capi/`, each with its library.
const PROGRAMS: &[(&str, &str)] =
    &[("examples/tunnel.c", "rxo"), ("tests/misuse.c", "rxo"), ("tests/trace.c", "rxo-trace")];

const WARNINGS: &[&str] = &["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror"];
const SANITIZERS: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
const MEMCHECK: &[&str] = &["--quiet", "--error-exitcode=9", "--leak-check=full"];

/// Builds and installs the libraries, and runs all programs.
///
/// # Errors
/// A package is missing, a program fails, or the ABI differs from `abi.txt`.
pub(super) fn run(scene: &Scene, report: &mut Report) -> Result<()> {
    apt::ensure(&[apt::CXX, apt::VALGRIND, apt::PKG_CONFIG, apt::CMAKE])?;
    let kit = Kit::install(scene)?;
    kit.compare_abi()?;
    let capture = kit.capture()?;
    for (source, library) in PROGRAMS {
        let program = kit.compile(source, "", &["-Wpedantic"], &kit.flags(&[library])?)?;
        kit.run(&program, &[&capture])?;
        let inside: Vec<&str> = MEMCHECK.iter().copied().chain([&*program, &capture]).collect();
        kit.run("valgrind", &inside)?;
        let program = kit.compile(source, "-sanitized", SANITIZERS, &kit.r#static(library)?)?;
        kit.run(&program, &[&capture])?;
    }
    let header = kit.path("include/rxo-trace.h");
    let include = format!("-I{}", kit.path("include"));
    kit.run(
        "g++",
        &["-fsyntax-only", "-Wall", "-Wextra", "-Werror", &include, "-x", "c++", &header],
    )?;
    kit.build_with_cmake()?;
    report.note(format!("{} programs in C ran with librxo", PROGRAMS.len()));
    Ok(())
}

/// Tests the example in Go, which needs no module of others.
///
/// # Errors
/// librxo cannot be installed, or a test fails.
pub(super) fn run_go(scene: &Scene, report: &mut Report) -> Result<()> {
    if !sh::has_program("go") {
        report.not_run("go is not installed: install Go 1.21 or newer".to_owned());
        return Ok(());
    }
    apt::ensure(&[apt::CXX, apt::PKG_CONFIG])?;
    let kit = Kit::install(scene)?;
    let (folder, modules) = (kit.root.join("examples/go"), kit.path("go"));
    // Go's cache of builds does not notice that an installed header has changed.
    let header = fs::read_to_string(kit.path("include/rxo.h"))?;
    let flags =
        format!("-O2 -DRXO_HEADER={}", BuildHasherDefault::<DefaultHasher>::new().hash_one(header));
    for command in [&["vet", "./..."][..], &["test", "-count=1", "-timeout=5m", "./..."]] {
        kit.with_library(Program::new(&folder, "go", command))
            .env("GOPATH", &modules)
            .env("CGO_CFLAGS", &flags)
            .run()?;
    }
    Ok(())
}

/// The installation of librxo that this step tests.
pub(super) struct Kit {
    root: PathBuf,
    /// `/usr` below a folder, as a packager's `DESTDIR` makes it: so every program here also tests that the
    /// installed files are found wherever they are.
    prefix: PathBuf,
}

impl Kit {
    pub(super) fn install(scene: &Scene) -> Result<Self> {
        let destdir = scene.workspace.target.join("capi");
        let prefix = capi::below(Some(destdir.as_os_str()), Path::new("/usr"));
        let build = |features: &str| {
            scene.checked("build --quiet", &format!("--workspace --lib {features}"))
        };
        capi::install(&scene.workspace, build, "ci", &prefix)?;
        Ok(Self { root: scene.workspace.root.join("capi"), prefix })
    }

    /// Makes a capture, and returns its path.
    pub(super) fn capture(&self) -> Result<String> {
        let path = self.path("in.pcap");
        let program = self.compile("tests/capture.c", "", &[], &self.flags(&["rxo"])?)?;
        self.run(&program, &[&path])?;
        Ok(path)
    }

    fn program<A: AsRef<std::ffi::OsStr>>(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Program {
        self.with_library(Program::new(&self.root, program, arguments))
    }

    /// Lets `program` find the installed libraries, to build with them and to run.
    fn with_library(&self, program: Program) -> Program {
        program
            .env("LD_LIBRARY_PATH", &self.path("lib"))
            .env("PKG_CONFIG_PATH", &self.path("lib/pkgconfig"))
    }

    pub(super) fn run(&self, program: &str, arguments: &[&str]) -> Result<()> {
        self.program(program, arguments).run()
    }

    /// Returns the compiler flags of `libraries` from `pkg-config`.
    pub(super) fn flags(&self, libraries: &[&str]) -> Result<Vec<String>> {
        let arguments = ["--cflags", "--libs"].iter().chain(libraries);
        let said = self.program("pkg-config", arguments).output()?;
        Ok(said.split_whitespace().map(str::to_owned).collect())
    }

    /// Returns the flags for static linking, with the archive instead of the shared library, as docs/c.md
    /// shows.
    fn r#static(&self, library: &str) -> Result<Vec<String>> {
        let flags = self.flags(&["--static", library])?;
        let (shared, archive) = (format!("-l{library}"), format!("-l:lib{library}.a"));
        let archived = |flag| if flag == shared { archive.clone() } else { flag };
        Ok(flags.into_iter().map(archived).collect())
    }

    /// Builds the example with CMake, with the shared and with the static library, and runs both.
    fn build_with_cmake(&self) -> Result<()> {
        let (folder, prefix) =
            (self.path("cmake"), format!("-DCMAKE_PREFIX_PATH={}", self.path("")));
        self.run("cmake", &["-S", "tests/cmake", "-B", &folder, &prefix])?;
        self.run("cmake", &["--build", &folder])?;
        for program in ["tunnel", "tunnel-static"] {
            self.run(&format!("{folder}/{program}"), &[])?;
        }
        Ok(())
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

    /// Returns the symbols that a library exports, sorted.
    fn symbols(&self, library: &str) -> Result<Vec<String>> {
        let path = self.path(&format!("lib/lib{library}.so.1"));
        let text = Program::new(&self.root, "nm", ["-D", "--defined-only", &path]).output()?;
        let mut symbols: Vec<String> =
            text.lines().filter_map(|line| line.rsplit(' ').next()).map(str::to_owned).collect();
        symbols.sort();
        Ok(symbols)
    }

    /// Compares symbols and struct layouts with `abi.txt`, so that a change of the ABI appears as a change of
    /// a file. The symbols of librxo come first, then those that only librxo-trace has.
    fn compare_abi(&self) -> Result<()> {
        let mut found = self.symbols("rxo")?;
        let more = self.symbols("rxo-trace")?;
        if let Some(missing) = found.iter().find(|symbol| !more.contains(symbol)) {
            bail!("librxo-trace lacks {missing}, which librxo has");
        }
        found.extend(more.into_iter().filter(|symbol| !found.contains(symbol)).collect::<Vec<_>>());
        let program = self.compile("tests/abi.c", "", &[], &self.flags(&["rxo-trace"])?)?;
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
            "librxo.so.1"
        )
    }
}
