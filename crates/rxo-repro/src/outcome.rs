//! What all experiments do alike: get their networks, draw their figures, print, and end.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use rxo_console::fault::partial;
use rxo_console::output;
use rxo_lab::{Privilege, become_root_in_user_namespace};
use serde::Serialize;

/// Gets the right to make private networks, and says how. To be called before anything starts a
/// thread: only a process of one thread can get its own namespaces.
///
/// # Errors
/// When the system gives neither root nor user namespaces.
pub(super) fn privilege() -> Result<&'static str> {
    Ok(match become_root_in_user_namespace()? {
        Privilege::Given => "root",
        Privilege::UserNamespace => "user-namespace",
    })
}

/// Why a report is not everything, if a signal ended the measuring.
pub(super) fn stopped(stop: &AtomicBool) -> Option<String> {
    let is_stopped = stop.load(Ordering::Relaxed);
    is_stopped.then(|| "stopped by a signal: this is what was measured until then".to_owned())
}

/// Writes every drawing, by its file's name, into the directory `out`, and says where.
///
/// # Errors
/// When the directory cannot be made or a file cannot be written.
pub(super) fn draw(drawings: Vec<(String, String)>, out: &Path) -> Result<Vec<String>> {
    fs::create_dir_all(out).with_context(|| {
        format!("cannot make the directory {}; choose another with --out", out.display())
    })?;
    drawings
        .into_iter()
        .map(|(name, svg)| {
            let path = out.join(name);
            fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(path.display().to_string())
        })
        .collect()
}

/// Prints a report, as JSON or as `text`.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn print(
    report: &impl Serialize,
    json: bool,
    text: impl FnOnce() -> String,
) -> Result<()> {
    if json { output::json_document(report) } else { output::text(&text()) }
}

/// The command's end: an error with exit code 3 when the report is not everything.
///
/// # Errors
/// When there is a reason why not.
pub(super) fn ended(why_partial: Option<String>) -> Result<()> {
    why_partial.map_or(Ok(()), |why| Err(partial(why)))
}
