//! Packs the archive for systems without dpkg.

use std::fs;

use anyhow::{Context, Result};

use super::Place;
use super::files::{File, write};

/// Packs `files` as `STEM.tar.gz`, below a folder `STEM`.
///
/// # Errors
/// A file cannot be written, or tar fails.
pub(super) fn pack(place: &Place, stem: &str, files: &[File]) -> Result<()> {
    let stage = place.target.join("dist-archive");
    if stage.exists() {
        fs::remove_dir_all(&stage).with_context(|| format!("{}", stage.display()))?;
    }
    write(files, &stage.join(stem))?;
    let output = place.folder.join(format!("{stem}.tar.gz"));
    let (output, time) = (output.to_string_lossy(), format!("--mtime=@{}", place.epoch_s));
    let arguments = [
        // A fixed header format, without access times, which would differ between runs.
        "--format=ustar",
        "--sort=name",
        &time,
        "--owner=root:0",
        "--group=root:0",
        // No file name and no time in the gzip header.
        "--use-compress-program=gzip -9n",
        "-cf",
        &output,
        stem,
    ];
    place.program(&stage, "tar", arguments).run_aside()
}
