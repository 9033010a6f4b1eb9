//! A running host, and the capture file for its packets.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Error, Result};
use rxo::live::host::{Lingering, Outcome, RunningHost, linger};
use rxo_confine::InForce;

use super::LinkNotices;
use crate::output;
use crate::tap::Capture;

/// A host that runs for a command, with its capture and its notices.
#[derive(Debug)]
pub(crate) struct Running {
    pub(super) host: RunningHost,
    /// The processors to which the host's workers are bound, in the order of the workers.
    pub(super) cpus: Vec<u16>,
    pub(super) capture: Option<Capture>,
    /// `true` if the filter of the fast path has at least one rule. Without a rule, turning the filter on would have no
    /// effect.
    pub(super) has_rules: bool,
    pub(super) link: LinkNotices,
    pub(super) in_force: InForce,
}

impl Running {
    /// Returns `true` if the filter of the fast path has at least one rule, so that turning it on has an
    /// effect.
    pub(crate) const fn has_rules(&self) -> bool {
        self.has_rules
    }

    /// Returns the processors to which the host's workers are bound, in the order of the workers; empty if
    /// the workers are not bound.
    pub(crate) fn cpus(&self) -> &[u16] {
        &self.cpus
    }

    /// Returns the pending notices about the link of the host's device.
    pub(crate) const fn link_notices(&mut self) -> &mut LinkNotices {
        &mut self.link
    }

    /// Returns the limits of the sandbox that apply to this process.
    pub(crate) const fn in_force(&self) -> &InForce {
        &self.in_force
    }

    /// Stops the host once no peer can need its last ACK again, or once `stop` is set; then completes the
    /// capture. Returns the host's counters, and the failure of its device if that failure ended the host.
    ///
    /// # Errors
    /// If the host's device failed, or packets are missing in the capture.
    pub(crate) fn finish(self, stop: &AtomicBool) -> Result<Outcome> {
        let (outcome, ended) = self.end(stop);
        ended.map(|()| outcome)
    }

    /// Stops the host as [`Running::finish`] does. Returns its counters even if the host or the capture has
    /// failed.
    pub(crate) fn end(self, stop: &AtomicBool) -> (Outcome, Result<()>) {
        linger(&self.host.asker(), || stop.load(Ordering::Relaxed), announce_waiting);
        let mut outcome = self.host.stop();
        if let Some(conflict) = outcome.counters.conflict {
            output::note(&conflict.to_string());
        }
        let captured = self.capture.as_ref().map_or(Ok(()), Capture::finish);
        let result = std::mem::replace(&mut outcome.result, Ok(()));
        (outcome, result.map_err(Error::from).and(captured))
    }
}

impl Deref for Running {
    type Target = RunningHost;

    fn deref(&self) -> &RunningHost {
        &self.host
    }
}

/// Prints the reason why the command has not ended yet: connections that are still closing.
fn announce_waiting(why: Lingering) {
    output::note(&match why.closing {
        0 => "staying a moment for peers that may have missed the last ACK; Ctrl-C ends at once"
            .to_owned(),
        closing => {
            format!("waiting for peers to close (connections: {closing}); Ctrl-C ends at once")
        }
    });
}
