//! Checks the packed files with other programs: completions with shells, manual pages with man, the package
//! with lintian, and the list of parts with the CycloneDX schema.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::Report;
use crate::apt::{self, Package};
use crate::dist::{Made, Place};
use crate::sh::{self, Program};

/// Checks all packed files. A check whose program is missing is skipped with a note.
///
/// # Errors
/// A check fails; or, under `CI=true`, a program cannot be installed.
pub(super) fn at_files(place: &Place, made: &[Made], report: &mut Report) -> Result<()> {
    let path = |end: &str| {
        let found = made.iter().find(|one| one.name.ends_with(end));
        found.map(|one| place.folder.join(&one.name)).with_context(|| format!("no file *{end}"))
    };
    let stage = place.target.join("dist-look");
    if stage.exists() {
        fs::remove_dir_all(&stage).with_context(|| format!("{}", stage.display()))?;
    }
    let (deb, stage_name) = (path(".deb")?, stage.to_string_lossy().into_owned());
    Program::new(&place.root, "dpkg-deb", ["-x", &deb.to_string_lossy(), &stage_name]).run()?;
    completes(&stage)?;
    let parsed: [(Package, &str, &[&str]); 2] = [
        (apt::ZSH, "zsh", &["-n", "usr/share/zsh/vendor-completions/_rxo"]),
        (apt::FISH, "fish", &["--no-execute", "usr/share/fish/vendor_completions.d/rxo.fish"]),
    ];
    for (package, program, arguments) in parsed {
        with(package, report, || Program::new(&stage, program, arguments).run())?;
    }
    with(apt::MAN, report, || renders(&stage.join("usr/share/man/man1")))?;
    let deb = deb.to_string_lossy().into_owned();
    let lint = ["--fail-on", "error,warning", "--allow-root", &deb];
    with(apt::LINTIAN, report, || Program::new(&place.root, "lintian", lint).run())?;
    let parts = path(".cdx.json")?;
    with(apt::PYTHON, report, || conforms(place, &parts))?;
    fs::remove_dir_all(&stage).with_context(|| format!("{}", stage.display()))
}

/// Runs the check `look` if `package` is there or can be installed; otherwise notes it, or fails under
/// `CI=true`.
fn with(package: Package, report: &mut Report, look: impl FnOnce() -> Result<()>) -> Result<()> {
    match apt::ensure(&[package]) {
        Ok(()) => look(),
        Err(obstacle) if sh::is_ci() => Err(obstacle),
        Err(obstacle) => {
            report.note(format!("not looked at: {obstacle}"));
            Ok(())
        }
    }
}

/// Checks that Bash completes a command and a flag.
fn completes(stage: &Path) -> Result<()> {
    let script = "source usr/share/bash-completion/completions/rxo
        try() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
                _rxo rxo \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; echo \"${COMPREPLY[*]}\"; }
        try rxo expa; try rxo run --take-o";
    let said = Program::new(stage, "bash", ["-c", script]).output()?;
    ensure!(said == "expand\n--take-over\n", "bash completes {said:?}");
    Ok(())
}

/// Checks that man formats every page without a warning, and that the text contains the page's name.
fn renders(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let show = Program::new(folder, "man", ["--warnings=w", "-l", &name]);
        let (ended, said) =
            show.env("MANWIDTH", "100").env("LC_ALL", "C.UTF-8").output_of_both()?;
        ended.with_context(|| said.clone())?;
        let complaint = said.lines().find(|line| line.contains("warning:"));
        ensure!(complaint.is_none(), "{name}: {}", complaint.unwrap_or_default());
        ensure!(said.contains("NAME") && said.contains("SYNOPSIS"), "{name} is empty: {said}");
    }
    Ok(())
}

/// Checks the list of parts against the schema, which comes with a Python library.
fn conforms(place: &Place, parts: &Path) -> Result<()> {
    let environment = place.target.join("dist-schema");
    let folder = environment.to_string_lossy();
    Program::new(&place.root, "python3", ["-m", "venv", &folder]).run()?;
    let python = environment.join("bin/python").to_string_lossy().into_owned();
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", VALIDATOR];
    Program::new(&place.root, &python, install).run()?;
    let script = "import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
wrong = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(str(wrong) if wrong else 0)";
    Program::new(&place.root, &python, ["-c", script, &parts.to_string_lossy()]).run()
}

const VALIDATOR: &str = "cyclonedx-python-lib[json-validation]==11.12.0";
