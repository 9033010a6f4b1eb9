//! Counts instructions with callgrind.

use std::path::Path;
use std::process::Command;

/// Returns a command that counts the instructions inside functions whose names contain `counted`, and writes
/// the profile to the file `profile`. The caller appends further options of callgrind, then the program.
///
/// A glibc setting makes counts independent of the processor: by default glibc copies more than a few KiB
/// with `rep movsb` on some processors, which callgrind counts as an instruction per byte.
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
