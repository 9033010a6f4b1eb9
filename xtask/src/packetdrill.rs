//! `cargo xtask packetdrill`: the endpoint as a shared object, and packetdrill with it.
//!
//! The scripts of `rxo-packetdrill` run in its tests by the project's own runner, on every machine.
//! Here they run by packetdrill itself, where it is installed: a second opinion on the runner, the
//! scripts and the shared object. Scripts from elsewhere run the same way; their shell commands are
//! packetdrill's to run, on this machine.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::UsageError;
use crate::files;
use crate::sh::{self, Program};
use crate::workspace::Workspace;

/// Builds the shared object; without `--build` then runs the scripts that are named, or all of the
/// project's.
///
/// # Errors
/// It does not build, or a script fails.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (flags, scripts): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|argument| argument.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|flag| **flag != "--build") {
        bail!(UsageError(format!("packetdrill: no option {unknown}; there is --build")));
    }
    let workspace = Workspace::load()?;
    let object = build(&workspace)?;
    println!("{}", object.display());
    if !flags.is_empty() && scripts.is_empty() {
        return Ok(());
    }
    if !is_installed() {
        println!("{NOT_INSTALLED}");
        return Ok(());
    }
    let scripts = match scripts.is_empty() {
        true => own_scripts(&workspace)?,
        false => scripts.into_iter().map(PathBuf::from).collect(),
    };
    run_all(&workspace, &object, &scripts)
}

/// The step of the tests: all of the project's scripts. `Some` is why they did not run.
///
/// # Errors
/// It does not build, or a script fails.
pub(crate) fn check(workspace: &Workspace) -> Result<Option<&'static str>> {
    if !is_installed() {
        return Ok(Some(NOT_INSTALLED));
    }
    let object = build(workspace)?;
    run_all(workspace, &object, &own_scripts(workspace)?)?;
    Ok(None)
}

fn is_installed() -> bool {
    sh::has_program("packetdrill")
}

fn build(workspace: &Workspace) -> Result<PathBuf> {
    Program::cargo(&workspace.root, "build --quiet --package rxo-packetdrill --lib").run()?;
    let object = workspace.target.join("debug/librxo_packetdrill.so");
    if !object.is_file() {
        bail!(
            "{} is not there after building it; shared objects are built on Linux",
            object.display()
        );
    }
    Ok(object)
}

/// Every script of the project, in order.
fn own_scripts(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    files::below(&workspace.root.join("crates/rxo-packetdrill/scripts"), "pkt")
}

fn run_all(workspace: &Workspace, object: &Path, scripts: &[PathBuf]) -> Result<()> {
    let here = std::env::current_dir()?;
    let mut failed = 0;
    for script in scripts {
        let script = here.join(script);
        let arguments =
            [format!("--so_filename={}", object.display()), script.display().to_string()];
        let packetdrill = Program::new(&workspace.root, "packetdrill", arguments);
        let (is_ok, said) = packetdrill.output_of_both()?;
        let shown = script.strip_prefix(&workspace.root).unwrap_or(&script).display();
        if is_ok {
            println!("ok    {shown}");
        } else {
            failed += 1;
            println!("FAIL  {shown}\n{}", said.trim_end());
        }
    }
    println!("packetdrill: {} of {} scripts passed", scripts.len() - failed, scripts.len());
    match failed {
        0 => Ok(()),
        _ => bail!("packetdrill: {failed} of {} scripts failed", scripts.len()),
    }
}

const NOT_INSTALLED: &str = "packetdrill is not on the PATH, so the scripts ran by the project's own \
     runner only (cargo test -p rxo-packetdrill --test scripts)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_are_found() {
        let workspace = Workspace::load().unwrap();
        let scripts = own_scripts(&workspace).unwrap();
        assert!(scripts.len() >= 60, "{}", scripts.len());
        assert!(scripts.is_sorted());
    }

    #[test]
    fn an_unknown_option_is_named() {
        let error = run(&["--bulid".to_owned()]).unwrap_err().to_string();
        assert_eq!(error, "packetdrill: no option --bulid; there is --build");
    }
}
