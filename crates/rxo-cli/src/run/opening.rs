//! Opening: the last steps of a run before its first frame, after all slow preparations.

use anyhow::Result;
use rxo_driver::custody::Control;

use super::devices::Handles;
use super::plan::Plan;
use super::reporter::Reporter;
use super::succession::Claim;
use crate::control::{Process, Served, Sockets};

/// The steps that a process takes between the last preparation and the first frame.
pub(super) struct Opening {
    /// The claim to the devices of another process; `None` for the first process of the run.
    pub(super) claim: Option<Claim>,
    /// The sockets of `--control` and `--metrics`, and the parts of the process that answer their clients.
    pub(super) sockets: Sockets,
    pub(super) process: Process,
    /// The first line of the output.
    pub(super) line: String,
}

impl Opening {
    /// Performs the last steps. If another process holds the devices, takes over the devices and the clients of
    /// the sockets, which the other process has answered so far. Answers these clients until the returned value
    /// is dropped.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn complete(
        self,
        devices: (&Handles, &Plan),
        keeper: &Control,
        reporter: &Reporter,
    ) -> Result<Served> {
        if let Some(claim) = self.claim {
            claim.enforce(devices, keeper);
        }
        reporter.line(self.line);
        self.sockets.serve(self.process)
    }
}
