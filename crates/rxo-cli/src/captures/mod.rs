//! The captures that commands read: the inputs, the reading, and its progress bar.

mod input;
mod progress;
mod rewriting;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use rxo_capture::{Batches, Step};
use rxo_console::numbers::grouped;

pub(crate) use input::Input;
pub(crate) use progress::Progress;
pub(crate) use rewriting::Rewriting;

use crate::exit::usage;

/// Opens the capture `input` and reads its first batch. Returns the reader of batches, and the outcome of reading the
/// first.
///
/// # Errors
/// If the input cannot be opened, or is not a capture.
pub(crate) fn open(input: &Input, stop: &Arc<AtomicBool>) -> Result<(Batches, Step)> {
    let mut batches = Batches::new(input.open(stop)?, Arc::clone(stop));
    let step = batches.step();
    Ok((batches, step))
}

/// Returns the reason why a capture was not read to its end, given its last `step`; `None` if the capture was
/// read to its end.
pub(crate) fn partial_reason(step: &Step) -> Option<String> {
    match step {
        Step::More | Step::Over => None,
        Step::Damaged(error) => Some(error.to_string()),
        Step::Stopped(packets) => Some(format!("interrupted after {} packets", grouped(*packets))),
    }
}

/// Returns the inputs that `files` name; a directory is replaced by the files in it. `example` is a command line with
/// files, shown in the error message if there are no files.
///
/// # Errors
/// If there are no files, a directory cannot be read or is empty, or standard input is named twice.
pub(crate) fn inputs(files: &[PathBuf], example: &str) -> Result<Vec<Input>> {
    if files.is_empty() {
        let message = format!("no capture: give files before the options ({example}), or -");
        return Err(usage(message));
    }
    let mut inputs = Vec::new();
    for file in files {
        if file.is_dir() {
            inputs.extend(inside(file)?.iter().map(Input::new));
        } else {
            inputs.push(Input::new(file));
        }
    }
    if inputs.iter().filter(|input| **input == Input::Standard).count() > 1 {
        return Err(usage("- twice: standard input can be read once"));
    }
    Ok(inputs)
}

/// Returns a note for each directory among `files` that has directories in it, because only its files are read.
pub(crate) fn skipped(files: &[PathBuf]) -> Vec<String> {
    let note = |folder: &PathBuf| {
        let name = folder.display();
        let inside = folder.join("*/").display().to_string();
        let count = visible(folder).ok()?.into_iter().filter(|path| path.is_dir()).count();
        let what = match count {
            0 => return None,
            1 => "a directory in it was".to_owned(),
            count => format!("{} directories in it were", grouped(count as u64)),
        };
        Some(format!("{name}: {what} not read; to read them too, give {name} {inside}"))
    };
    files.iter().filter(|file| file.is_dir()).filter_map(note).collect()
}

/// Returns the files in the directory `folder`, sorted by name, without hidden files.
fn inside(folder: &Path) -> Result<Vec<PathBuf>> {
    let name = folder.display();
    let mut files = visible(folder).map_err(|error| usage(format!("{name}: {error}")))?;
    files.retain(|path| path.is_file());
    files.sort();
    if !files.is_empty() {
        return Ok(files);
    }
    Err(usage(match skipped(&[folder.to_owned()]).first() {
        Some(_) => {
            let inside = folder.join("*/");
            format!(
                "{name}: the directory has no files, only directories; give {}",
                inside.display()
            )
        }
        None => format!("{name}: the directory has no files"),
    }))
}

/// Returns what is in the directory `folder`, without what is hidden.
fn visible(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let is_hidden = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    Ok(paths.into_iter().filter(|path| !is_hidden(path)).collect())
}
