//! `--tap FILE`: writes all traffic of a command to a capture file.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Error, Result};
use rxo::tracer::{TracePoint, Tracer};
use rxo_driver::{DeviceName, clock};
use rxo_frame::LinkKind;

use crate::output;

/// A capture file that is being written, and its trace points.
#[derive(Debug)]
pub(crate) struct Capture {
    path: PathBuf,
    tracer: Tracer<File>,
    /// The trace points: first that of the nic, then one for each host.
    pub(crate) points: Vec<TracePoint<File>>,
}

impl Capture {
    /// Creates the capture file at `path`, with one interface for each of `devices`, whose link layer is `link`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn begin(path: &Path, devices: &[&DeviceName], link: LinkKind) -> Result<Self> {
        let file = File::create(path).with_context(|| cannot_write(path))?;
        Self::into_file((path, file), devices, link)
    }

    /// Creates a capture file like [`Capture::begin`], but keeps a file that exists, because another process may write to it:
    /// for `trace.pcapng` the new file is then `trace-2.pcapng`, or one with a higher number.
    ///
    /// # Errors
    /// The errors of [`Capture::begin`].
    pub(crate) fn begin_beside(
        path: &Path,
        devices: &[&DeviceName],
        link: LinkKind,
    ) -> Result<Self> {
        // A device or a pipe is no file that would be lost.
        if !path.is_file() {
            return Self::begin(path, devices, link);
        }
        for number in 2..u32::MAX {
            let path = numbered(path, number);
            match File::create_new(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                file => {
                    let file = file.with_context(|| cannot_write(&path))?;
                    output::note(&format!("--tap: goes on in {}", path.display()));
                    return Self::into_file((&path, file), devices, link);
                }
            }
        }
        Err(Error::msg(cannot_write(path)))
    }

    fn into_file(
        (path, file): (&Path, File),
        devices: &[&DeviceName],
        link: LinkKind,
    ) -> Result<Self> {
        let cannot = || cannot_write(path);
        let application = concat!("rxo ", env!("CARGO_PKG_VERSION"));
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let since_1970 = since_1970.context("the clock of this machine is before 1970")?;
        let epoch = since_1970.saturating_sub(Duration::from_nanos(clock::now().as_nanos()));
        let tracer = Tracer::new(file, application, epoch).with_context(cannot)?;
        let point = |device: &DeviceName| tracer.point(&device.to_string(), link);
        let points = devices.iter().map(|device| point(device).with_context(cannot));
        let points = points.collect::<Result<_>>()?;
        Ok(Self { path: path.to_owned(), tracer, points })
    }

    /// Writes the buffered packets and ends the capture file.
    ///
    /// # Errors
    /// If packets are missing in the capture; the message says how many.
    pub(crate) fn finish(&self) -> Result<()> {
        let finished = self.tracer.finish();
        let missing = self.tracer.counters().unwritten;
        let incomplete = || format!("--tap {}: {missing} packets are missing", self.path.display());
        match finished {
            Err(error) => Err(Error::new(error).context(incomplete())),
            Ok(_) if missing > 0 => Err(Error::msg(incomplete())),
            Ok(_) => Ok(()),
        }
    }
}

/// Returns `path` with a number before its extension.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

fn cannot_write(path: &Path) -> String {
    format!("--tap {}: cannot be written", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_before_the_extension() {
        let rows = [("a/trace.pcapng", "a/trace-2.pcapng"), ("trace", "trace-2")];
        for (path, expected) in rows {
            assert_eq!(numbered(Path::new(path), 2), Path::new(expected));
        }
    }
}
