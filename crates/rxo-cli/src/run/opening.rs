//! Opening: the last steps of a run before its first frame, when everything that takes time is prepared.

use anyhow::Result;
use rxo_driver::custody::Control;

use super::devices::Handles;
use super::plan::Plan;
use super::say::Sayer;
use super::succession::Claim;
use crate::control::{Process, Served, Sockets};

/// The steps that a process takes before its first frame.
pub(super) struct Opening {
    /// The claim to the devices of another process; `None` for the first process of the run.
    pub(super) claim: Option<Claim>,
    /// The sockets of `--control` and `--metrics`, and the answers to their clients.
    pub(super) sockets: Sockets,
    pub(super) process: Process,
    /// The first line of the output.
    pub(super) line: String,
}

impl Opening {
    /// Takes the steps. While another process has the devices, it also answers the clients of the sockets. These are served until
    /// the returned value is dropped.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn complete(
        self,
        devices: (&Handles, &Plan),
        keeper: &Control,
        sayer: &Sayer,
    ) -> Result<Served> {
        if let Some(claim) = self.claim {
            claim.enforce(devices, keeper);
        }
        sayer.line(self.line);
        self.sockets.serve(self.process)
    }
}
