//! Counting instructions with callgrind.

use std::path::Path;
use std::process::Command;

/// A command that counts the instructions inside functions whose names contain `counted`, and leaves the
/// profile in the file `profile`. The caller appends further options of callgrind, then the program.
///
/// Counts do not depend on the processor: by default, glibc copies more than a few KiB by `rep movsb` on some
/// processors, and callgrind counts an instruction for each byte of it.
#[must_use]
pub fn callgrind(counted: &str, profile: &Path) -> Command {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--collect-atstart=no"])
        .arg(format!("--toggle-collect=*{counted}*"))
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .env("GLIBC_TUNABLES", "glibc.cpu.x86_rep_movsb_threshold=0x7fffffff");
    command
}
