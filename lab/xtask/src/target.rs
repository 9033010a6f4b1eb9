//! Targets of the compiler: whether one is installed, and how it comes there.

use std::path::Path;

use anyhow::Result;

use crate::sh::{self, Program};

/// True when the compiler can build for `triple`. Asks rustup for what it lacks; without a network that cannot be had.
///
/// # Errors
/// If the compiler does not say where it is.
pub(crate) fn is_there(root: &Path, triple: &str) -> Result<bool> {
    let sysroot = Program::new(root, "rustc", ["--print", "sysroot"]).output()?;
    let library = Path::new(sysroot.trim()).join(format!("lib/rustlib/{triple}/lib"));
    if !library.is_dir() && sh::has_program("rustup") {
        let add = Program::new(root, "rustup", ["target", "add", triple]);
        // The caller says what follows from that.
        if let Err(error) = add.run_aside() {
            eprintln!("{error:#}");
        }
    }
    Ok(library.is_dir())
}
