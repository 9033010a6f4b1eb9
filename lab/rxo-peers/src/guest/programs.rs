//! Finds and installs the programs that guests need.
//!
//! Separate from the image because finding changes nothing, while installing changes the system. Only
//! Debian's packages are known.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use rxo_testbed::error::{LabError, Result};

pub(super) const QEMU: Program = Program { name: "qemu-system-x86_64", package: "qemu-system-x86" };
/// The statically linked busybox. The package `busybox` has this program too, but linked to libraries that a
/// guest lacks.
pub(super) const BUSYBOX: Program = Program { name: "busybox", package: "busybox-static" };
/// The C compiler for the counting plugin.
pub(super) const COMPILER: Program = Program { name: "cc", package: "gcc" };

/// A program with its Debian package.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    name: &'static str,
    package: &'static str,
}

impl Program {
    /// Finds the program in the usual directories.
    ///
    /// # Errors
    /// If the program is missing. The message is one line and names the package.
    pub(super) fn find(self) -> Result<PathBuf> {
        let Self { name, package } = self;
        place(name).ok_or_else(|| {
            LabError::Unsupported(format!(
                "{name} is not installed, and guests need it: apt-get install {package}"
            ))
        })
    }
}

/// Installs QEMU and busybox if they are missing, this process is root, and there is apt-get. Passes one line
/// to `say` first. Otherwise does nothing.
///
/// # Errors
/// If apt-get fails. The message is one line and names the packages.
pub(super) fn install_missing(say: impl FnOnce(&str)) -> Result<()> {
    let is_missing = |program: &Program| place(program.name).is_none();
    let missing = [QEMU, BUSYBOX].into_iter().filter(is_missing);
    let packages: Vec<_> = missing.map(|program| program.package).collect();
    match place("apt-get").filter(|_| rustix::process::geteuid().is_root()) {
        Some(apt_get) if !packages.is_empty() => {
            say(&format!(
                "installing {} with apt-get, because guests need it",
                packages.join(" and ")
            ));
            install(|| Command::new(&apt_get), &packages)
        }
        _ => Ok(()),
    }
}

fn install(apt_get: impl Fn() -> Command, packages: &[&str]) -> Result<()> {
    let options = ["install", "-y", "-qq", "--no-install-recommends"];
    let steps = [vec!["update", "-qq"], [&options[..], packages].concat()];
    for arguments in steps {
        let mut command = apt_get();
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        output(&mut command).map_err(|why| {
            let packages = packages.join(" ");
            LabError::Unsupported(format!("guests need {packages}, and {why}"))
        })?;
    }
    Ok(())
}

/// Returns the output of a program, as text.
///
/// # Errors
/// The errors of [`bytes`].
pub(super) fn output(command: &mut Command) -> std::result::Result<String, String> {
    bytes(command).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the output of a program.
///
/// # Errors
/// If the program cannot be run or fails: its name, and the last line of its standard error.
pub(super) fn bytes(command: &mut Command) -> std::result::Result<Vec<u8>, String> {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(format!("{name}: {}", last.trim()))
}

fn place(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places: Vec<_> = env::split_paths(&path).map(|directory| directory.join(name)).collect();
    places.into_iter().find(|place| place.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a function that makes a shell in place of apt-get, which runs `script`.
    fn shell(script: &str) -> impl Fn() -> Command {
        move || {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script, "apt-get"]);
            command
        }
    }

    #[test]
    fn the_list_of_packages_is_renewed_before_they_are_installed() {
        let log = env::temp_dir().join(format!("rxo-programs-{}", std::process::id()));
        let script = format!("echo \"$DEBIAN_FRONTEND $*\" >>{}", log.display());
        install(shell(&script), &["qemu-system-x86", "busybox-static"]).unwrap();
        assert_eq!(
            std::fs::read_to_string(&log).unwrap(),
            "noninteractive update -qq\nnoninteractive install -y -qq --no-install-recommends \
             qemu-system-x86 busybox-static\n"
        );
        std::fs::remove_file(log).unwrap();
    }

    #[test]
    fn a_failure_is_one_line_that_names_the_package() {
        let script = "echo 'E: no network' >&2; echo >&2; exit 100";
        let error = install(shell(script), &["busybox-static"]).unwrap_err();
        assert_eq!(error.to_string(), "guests need busybox-static, and sh: E: no network");
    }

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let absent = Program { name: "no-such-program-here", package: "no-such-package" };
        let line = absent.find().unwrap_err().to_string();
        assert!(
            line.ends_with("apt-get install no-such-package") && !line.contains('\n'),
            "{line}"
        );
    }
}
