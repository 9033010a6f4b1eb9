//! `--tap FILE`: writes all traffic of a command to a capture file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Error, Result};
use rxo::tracer::{TracePoint, Tracer};
use rxo_driver::{DeviceName, clock};
use rxo_frame::LinkKind;

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
        let cannot = || format!("--tap {}: cannot be written", path.display());
        let file = File::create(path).with_context(cannot)?;
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
