//! The captures of figures 4 to 8: made one after the other, or found in a directory.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use rxo_capture::Capture;
use rxo_console::fault::usage;
use serde_json::{Value, json};

use super::examine::{BUFFERS_KB, Condition, ENTRIES, Examined, WINDOWS, examine};
use super::senders::{self, Captured, Link};
use crate::claim::Fact;
use crate::study::{Rows, Table, rows_of};

/// The source of the captures.
#[derive(Debug)]
pub(super) enum Sources {
    /// The lab's senders. Captures are kept in the directory `keep`, if there is one.
    Lab { conditions: Vec<Condition>, link: Link, keep: Option<PathBuf> },
    /// Existing files.
    Brought(Vec<PathBuf>),
}

impl Sources {
    fn len(&self) -> usize {
        match self {
            Self::Lab { conditions, .. } => conditions.len(),
            Self::Brought(paths) => paths.len(),
        }
    }

    fn name(&self, place: usize) -> String {
        match self {
            Self::Lab { conditions, .. } => conditions[place].to_string(),
            Self::Brought(paths) => name(&paths[place]),
        }
    }

    /// Makes or opens the capture at index `place`, and examines it; `None` if `stop` is set meanwhile.
    fn examined(&self, place: usize, stop: &AtomicBool) -> Result<Option<Examined>> {
        match self {
            Self::Brought(paths) => {
                let (path, name) = (&paths[place], name(&paths[place]));
                examine(Capture::open(path)?, &name, Condition::of_file(&name), 0).map(Some)
            }
            Self::Lab { conditions, link, keep } => {
                let condition = conditions[place];
                let captured = senders::capture(condition, *link, stop)?;
                let Some(Captured { file, lost_frames }) = captured else { return Ok(None) };
                let name = condition.file_name();
                if let Some(folder) = keep {
                    let kept = fs::create_dir_all(folder)
                        .and_then(|()| fs::write(folder.join(&name), &file));
                    kept.with_context(|| format!("cannot keep {name} in {}", folder.display()))?;
                }
                let capture = Capture::from_reader(&name, Box::new(Cursor::new(file)))?;
                examine(capture, &name, Some(condition), lost_frames).map(Some)
            }
        }
    }

    /// Returns the facts of the lab's captures.
    pub(super) fn facts(&self) -> Vec<Fact> {
        match self {
            Self::Brought(_) => Vec::new(),
            Self::Lab { link: Link { packets, bytes_per_s, burst_frames }, .. } => vec![
                ("packets", packets.to_string()),
                ("mbit", (bytes_per_s / 125_000).to_string()),
                ("burst", burst_frames.to_string()),
            ],
        }
    }
}

/// Examines the captures of `sources`, if `is_chosen`.
pub(super) fn table(sources: Sources, is_chosen: bool) -> Table<usize, Option<Examined>> {
    let is_lab = matches!(sources, Sources::Lab { .. });
    let sources = Rc::new(sources);
    let measured = Rc::clone(&sources);
    // A file has the same packets on a busy machine.
    let rounds = is_lab.then_some(1);
    let cases = (0..measured.len()).filter(|_| is_chosen).collect();
    Table::new(
        ("captures", cases),
        rounds,
        move |place| sources.name(place),
        move |place, _, stop| measured.examined(place, stop),
        ("eliminated", "of 10,000 eliminated"),
    )
}

/// Adds a row for each variant of the card and capture: its entries, buffer or window, and the packets eliminated.
pub(super) fn add_variants(rows: &mut Rows) {
    let entries = ENTRIES.map(u32::from);
    let kinds: [(&str, &str, &[u32]); 3] = [
        ("entries", "by_entries", &entries),
        ("buffer", "by_buffer", &BUFFERS_KB),
        ("window", "by_window", &WINDOWS),
    ];
    let of = |row: &Value| -> Vec<Value> {
        let kind = |(by, field, all): &(&str, &str, &[u32])| -> Vec<Value> {
            let eliminated = row[field].as_array().into_iter().flatten().zip(*all);
            let variant = |(eliminated, at)| json!({ "capture": row["name"], "by": by, "at": at, "eliminated": eliminated });
            eliminated.map(variant).collect()
        };
        kinds.iter().flat_map(kind).collect()
    };
    let variants: Vec<Value> = rows_of(rows, "captures").iter().flat_map(of).collect();
    rows.insert("variants".to_owned(), variants.into());
}

/// Returns the paths of the captures in a directory: first those that were kept, by their conditions, then
/// others by name.
///
/// # Errors
/// If the directory cannot be read, or holds no captures.
pub(super) fn found(folder: &Path) -> Result<Vec<PathBuf>> {
    let shown = folder.display();
    let entries = fs::read_dir(folder).map_err(|error| {
        usage(format!("--captures {shown}: cannot be read: {error}; name a directory of captures"))
    })?;
    let paths = entries.flatten().map(|entry| entry.path());
    let is_capture = |path: &PathBuf| {
        let name = name(path);
        path.is_file() && (name.contains(".pcap") || name.contains(".cap"))
    };
    let mut found: Vec<PathBuf> = paths.filter(is_capture).collect();
    found.sort_by_cached_key(|path| {
        let condition = Condition::of_file(&name(path));
        (condition.is_none(), condition, path.clone())
    });
    if found.is_empty() {
        return Err(usage(format!(
            "--captures {shown}: there is no file named *.pcap, *.pcapng or *.cap in it"
        )));
    }
    Ok(found)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
