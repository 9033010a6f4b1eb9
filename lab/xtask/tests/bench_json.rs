//! `cargo xtask bench …` prints only the JSON on standard output, because programs read it, even if
//! xtask has to install packages first.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes replacements for the programs that xtask calls. `apt-get` prints as the real one does, and creates
/// the file that makes `pkg-config` succeed.
fn programs(folder: &Path) {
    let cargo = env!("CARGO");
    let scripts = [
        ("apt-get", "echo \"Reading package lists... ($1)\"; : > \"$FOLDER/installed\"".to_owned()),
        ("pkg-config", "test -e \"$FOLDER/installed\"".to_owned()),
        (
            "cargo",
            format!("case $1 in run) echo '{{\"rows\": []}}';; *) exec \"{cargo}\" \"$@\";; esac"),
        ),
    ];
    for (name, script) in scripts {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// A folder that is deleted with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_installing_prints_is_not_mixed_with_the_json() {
    let folder = Folder(std::env::temp_dir().join(format!("xtask-json-{}", std::process::id())));
    fs::create_dir_all(&folder.0).unwrap();
    programs(&folder.0);
    // Root of a user namespace is enough, because nothing is really installed.
    let output = Command::new("unshare")
        .args(["--map-root-user", env!("CARGO_BIN_EXE_xtask"), "bench", "engine"])
        .env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", folder.0.display()))
        .env("FOLDER", &folder.0)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("Reading package lists... (install)"), "apt was not called: {said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "{\"rows\": []}\n");
}
