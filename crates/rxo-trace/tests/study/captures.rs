//! Real captures from elsewhere, if they are available.

use std::path::{Path, PathBuf};

use rxo_capture::{Capture, Interface, Record};

/// All packets of one capture.
pub(crate) struct Captured {
    pub(crate) name: String,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) records: Vec<Record>,
}

/// Returns all captures; prints a message if there are none.
pub(crate) fn all() -> Vec<Captured> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("SKIPPED: there are no captures in ../shared/captures");
        return Vec::new();
    };
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.filter(|path| is_capture(path)).collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

/// Returns the capture whose name begins with `name`.
pub(crate) fn named(name: &str) -> Option<Captured> {
    all().into_iter().find(|captured| captured.name.starts_with(name))
}

fn is_capture(path: &Path) -> bool {
    path.to_string_lossy().contains(".pcap")
}

fn read(path: &Path) -> Captured {
    let mut capture = Capture::open(path).unwrap();
    let mut records = Vec::new();
    // One of the captures lacks its last bytes.
    while capture.read_batch(&mut records, 1_000).is_ok_and(|count| count > 0) {}
    assert!(records.len() > 1_000, "{}", path.display());
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    Captured { name, interfaces: capture.interfaces().to_vec(), records }
}
