//! Makes captures one after the other, or finds them in a directory, and examines them.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rxo_capture::Capture;
use rxo_console::fault::usage;
use rxo_demo::turns::Turns;

use super::condition::Condition;
use super::examine::{Examined, examine};
use super::plan::{CapturePlan, LabPlan};
use super::senders;

/// Returns every capture of the plan, examined; after an interrupt, those so far.
///
/// # Errors
/// If a capture cannot be made, kept, found or opened.
pub(super) fn examined(plan: &CapturePlan, turns: &Turns<'_>) -> Result<Vec<Examined>> {
    match plan {
        CapturePlan::Lab(lab) => made(lab, turns),
        CapturePlan::Directory(directory) => brought(directory, turns),
    }
}

fn made(plan: &LabPlan, turns: &Turns<'_>) -> Result<Vec<Examined>> {
    if let Some(directory) = &plan.keep {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    }
    let mut all = Vec::with_capacity(plan.conditions.len());
    for &condition in &plan.conditions {
        turns.begin(&condition.to_string());
        let captured = senders::capture(condition, plan, turns.stop())
            .with_context(|| format!("no capture of {condition}"))?;
        let Some(captured) = captured else { break };
        if let Some(directory) = &plan.keep {
            let path = directory.join(condition.file_name());
            fs::write(&path, &captured.file)
                .with_context(|| format!("cannot keep {}", path.display()))?;
        }
        let name = condition.file_name();
        let capture = Capture::from_reader(&name, Box::new(Cursor::new(captured.file)))?;
        let examined = examine(capture, &name, Some(condition), captured.lost_frames)?;
        turns.end(&line(&condition.to_string(), &examined));
        all.push(examined);
    }
    Ok(all)
}

fn brought(directory: &Path, turns: &Turns<'_>) -> Result<Vec<Examined>> {
    let mut all = Vec::new();
    for path in files(directory)? {
        if turns.is_ended() {
            break;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        turns.begin(&name);
        let examined = examine(Capture::open(&path)?, &name, Condition::of_file(&name), 0)?;
        turns.end(&line(&name, &examined));
        all.push(examined);
    }
    all.sort_by_key(|examined| (examined.condition.is_none(), examined.condition));
    Ok(all)
}

/// Returns the paths of the captures in a directory, sorted by name.
///
/// # Errors
/// If the directory cannot be read, or holds no captures.
pub(super) fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let shown = directory.display();
    let entries = fs::read_dir(directory).map_err(|error| {
        usage(format!("--captures {shown}: cannot be read: {error}; name a directory of captures"))
    })?;
    let paths = entries.flatten().map(|entry| entry.path());
    let is_capture = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.is_file() && (name.contains(".pcap") || name.contains(".cap"))
    };
    let mut found: Vec<PathBuf> = paths.filter(is_capture).collect();
    found.sort();
    if found.is_empty() {
        return Err(usage(format!(
            "--captures {shown}: there is no file named *.pcap, *.pcapng or *.cap in it"
        )));
    }
    Ok(found)
}

fn line(name: &str, examined: &Examined) -> String {
    format!(
        "{name:<32} {:>6.0} of 10,000 eliminated, {:.1} flows in a window of 20",
        examined.eliminated, examined.interleaving.flows_per_window
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_without_captures_is_refused_by_name() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let error = files(&here).unwrap_err().to_string();
        assert!(error.contains("there is no file named *.pcap"), "{error}");
        let error = files(&here.join("nowhere")).unwrap_err().to_string();
        assert!(error.contains("nowhere: cannot be read"), "{error}");
    }
}
