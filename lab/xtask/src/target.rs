//! Compilation targets: checks that a target is installed, and installs it.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::sh::{self, Program};

/// Returns `true` if the compiler can build for `triple`. Tries to install a missing target with rustup,
/// which needs the network.
///
/// # Errors
/// If the compiler does not print its sysroot.
pub(crate) fn is_there(root: &Path, triple: &str) -> Result<bool> {
    let sysroot = Program::new(root, "rustc", ["--print", "sysroot"]).output()?;
    let library = Path::new(sysroot.trim()).join(format!("lib/rustlib/{triple}/lib"));
    if !library.is_dir() && sh::has_program("rustup") {
        let add = Program::new(root, "rustup", ["target", "add", triple]);
        // A failure is only printed: the caller decides from the result.
        if let Err(error) = add.run_aside() {
            eprintln!("{error:#}");
        }
    }
    Ok(library.is_dir())
}

/// Installs a missing target.
///
/// # Errors
/// The compiler cannot build for `triple`; the error names the command to run.
pub(crate) fn ensure(root: &Path, triple: &str) -> Result<()> {
    ensure!(
        is_there(root, triple)?,
        "the target {triple} is not installed: run `rustup target add {triple}`"
    );
    Ok(())
}
