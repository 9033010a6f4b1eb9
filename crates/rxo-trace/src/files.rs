//! Writes files that are either complete or absent.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Writes a file under a temporary name in the same folder, and renames it when it is complete.
/// Until then an existing file stays. After an error nothing of the new file is left.
///
/// # Errors
/// If the file cannot be created, written or renamed, or `fill` fails.
pub fn replace(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let unfinished = beside(path);
    let written = File::create(&unfinished).and_then(|mut file| {
        fill(&mut file)?;
        // After a power cut, an empty file of the right name would be worse than none.
        file.sync_all()
    });
    let done = written.and_then(|()| fs::rename(&unfinished, path));
    if done.is_err() {
        // The first error is the one to report.
        _ = fs::remove_file(&unfinished);
    }
    done
}

/// A name in the same folder that no other process uses.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_failure_leaves_what_was_there_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("rxo-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.txt");
        replace(&path, |file| file.write_all(b"first")).unwrap();
        let failed = replace(&path, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "disk full");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
