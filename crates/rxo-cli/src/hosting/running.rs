//! A running host, and the capture of its packets.

use std::ops::Deref;

use anyhow::Result;
use rxo::live::host::{Outcome, RunningHost};

use crate::tap::Capture;

/// A host that runs for a command.
#[derive(Debug)]
pub(crate) struct Running {
    pub(super) host: RunningHost,
    pub(super) capture: Option<Capture>,
}

impl Running {
    /// Stops the host, and completes the capture.
    ///
    /// # Errors
    /// The failure of its device, if that ended it before; or packets are missing in the capture.
    pub(crate) fn finish(self) -> Result<Outcome> {
        let mut outcome = self.host.stop();
        let captured = self.capture.as_ref().map_or(Ok(()), Capture::finish);
        std::mem::replace(&mut outcome.result, Ok(()))?;
        captured.map(|()| outcome)
    }
}

impl Deref for Running {
    type Target = RunningHost;

    fn deref(&self) -> &RunningHost {
        &self.host
    }
}
