//! Runs every script of `scripts/` with the project's own runner. Each script is a test named by its path.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut trials = Vec::new();
    collect(&folder, &folder, &mut trials);
    assert!(trials.len() >= LEAST_SCRIPTS, "{} scripts in {}", trials.len(), folder.display());
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Adds a test for each script in `folder` and its subfolders.
fn collect(root: &Path, folder: &Path, trials: &mut Vec<Trial>) {
    let entries = fs::read_dir(folder).expect("the folder of the scripts can be read");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry can be read").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(root, &path, trials);
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            trials.push(Trial::test(name.clone(), move || run(&name, &path)));
        }
    }
}

fn run(name: &str, path: &Path) -> Result<(), Failed> {
    let source = fs::read_to_string(path)?;
    if !source.starts_with("// ") {
        return Err("a script says in its first line what it shows, and the section".into());
    }
    rxo_packetdrill::run::run(name, &source).map_err(|failure| failure.to_string().into())
}

/// Fewest scripts; fewer mean that the folder was not found.
const LEAST_SCRIPTS: usize = 60;
