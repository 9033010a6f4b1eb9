//! `cargo xtask packetdrill`: the endpoint as a shared object, and packetdrill with it.
//!
//! The scripts of `rxo-packetdrill` run in its tests by the project's own runner, on every machine.
//! Here they run by packetdrill itself, where it is installed: a second opinion on the runner, the
//! scripts and the shared object. Scripts from elsewhere run the same way.
//!
//! Shell commands of a script are packetdrill's to run. They run in namespaces of their own, with a
//! device `tun0` for those who configure one, and with a folder over `/proc/sys/net/ipv4` that is the
//! shared object's: what a script sets there is set in our host, and the machine stays as it is.

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
    files::below(&workspace.root.join("lab/rxo-packetdrill/scripts"), "pkt")
}

fn run_all(workspace: &Workspace, object: &Path, scripts: &[PathBuf]) -> Result<()> {
    let here = std::env::current_dir()?;
    let mut failed = 0;
    for script in scripts {
        let script = here.join(script);
        let (ended, said) = run_one(object, &script)?;
        let shown = script.strip_prefix(&workspace.root).unwrap_or(&script).display();
        if ended.is_ok() {
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

/// Runs one script; whether it passed, and what packetdrill said. Scripts call commands beside them,
/// so they run in their own folder.
fn run_one(object: &Path, script: &Path) -> Result<(Result<()>, String)> {
    let folder = script.parent().unwrap_or(Path::new("."));
    let arguments = [format!("--so_filename={}", object.display()), script.display().to_string()];
    let sysctls = std::env::temp_dir().join(format!("rxo-packetdrill-{}", std::process::id()));
    std::fs::create_dir_all(&sysctls)?;
    // Without root it is root in a namespace of users, where the system allows that.
    let user = (!sh::is_root()).then_some("--map-root-user");
    let shell = [
        "--net",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        IN_NAMESPACES,
        "sh",
        &sysctls.display().to_string(),
        &object.display().to_string(),
    ];
    let shell = user.into_iter().chain(shell).map(str::to_owned).chain(arguments);
    let ended = Program::new(folder, "unshare", shell).output_of_both();
    std::fs::remove_dir_all(&sysctls)?;
    ended
}

/// The folder and the shared object come first, then packetdrill's arguments.
const IN_NAMESPACES: &str = r#"
mount --bind "$1" /proc/sys/net/ipv4 || exit 1
ip link set lo up
ip tuntap add tun0 mode tun && ip address add 192.168.0.1/24 dev tun0 && ip link set tun0 up
RXO_PACKETDRILL_SYSCTLS=$1 LD_PRELOAD=$2
export RXO_PACKETDRILL_SYSCTLS LD_PRELOAD
shift 2
exec packetdrill "$@"
"#;

const NOT_INSTALLED: &str = "packetdrill is not on the PATH; the project's own runner runs the \
     same scripts (cargo test -p rxo-packetdrill --test scripts)";

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
