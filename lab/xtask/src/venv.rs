//! Virtual environments of Python below the target folder, each with the packages that a file pins.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::sh::Program;

/// A virtual environment. Programs run in `place`.
pub(crate) struct Venv {
    folder: PathBuf,
    place: PathBuf,
}

impl Venv {
    /// Creates the virtual environment `folder`. An existing one keeps its packages, unless `flags` has
    /// `--clear`.
    ///
    /// # Errors
    /// If Python or its module `venv` is missing.
    pub(crate) fn create(folder: PathBuf, place: &Path, flags: &[&str]) -> Result<Self> {
        let name = folder.to_string_lossy();
        let arguments = ["-m", "venv"].iter().chain(flags).copied().chain([&*name]);
        Program::new(place, "python3", arguments).run()?;
        Ok(Self { folder, place: place.to_owned() })
    }

    /// Creates the virtual environment `folder` with exactly the packages in the file `lock`, whose hashes
    /// are checked. Does nothing if the environment was made from the same text.
    ///
    /// # Errors
    /// If Python is missing, or a package cannot be installed.
    pub(crate) fn locked(folder: PathBuf, place: &Path, lock: &Path) -> Result<Self> {
        let wanted = fs::read_to_string(lock).with_context(|| format!("{}", lock.display()))?;
        let installed = folder.join("installed.txt");
        if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
            return Ok(Self { folder, place: place.to_owned() });
        }
        let venv = Self::create(folder, place, &["--clear"])?;
        venv.pip(&["--require-hashes", "-r", &lock.to_string_lossy()])?;
        fs::write(&installed, wanted).with_context(|| format!("{}", installed.display()))?;
        Ok(venv)
    }

    /// Returns the environment's Python with `arguments`. It leaves no bytecode beside the sources.
    pub(crate) fn python<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Program {
        let python = self.folder.join("bin/python");
        Program::new(&self.place, &python.to_string_lossy(), arguments)
            .env("PYTHONDONTWRITEBYTECODE", "1")
    }

    /// Returns `PATH` with the environment's programs first.
    pub(crate) fn path(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.programs())
    }

    /// Returns the folder of the environment's programs.
    pub(crate) fn programs(&self) -> String {
        self.folder.join("bin").to_string_lossy().into_owned()
    }

    /// Runs `pip install` with `what`.
    ///
    /// # Errors
    /// If a package cannot be installed.
    pub(crate) fn pip(&self, what: &[&str]) -> Result<()> {
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        self.python(install.iter().chain(what)).run()
    }
}
