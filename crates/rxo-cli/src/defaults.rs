//! Values that hold unless the user says otherwise, each with its reason.

pub(crate) use rxo::live::defaults::{LIVE_MAX_SEGMENTS, POLICY, live};

/// When the host that a capture is studied for polls: what cards that moderate their interrupts are
/// commonly set to.
pub(crate) const STUDIED_POLL: &str = "time:50us";

/// When polls end for a capture that is written anew: as late as a host's budget allows, so that it
/// becomes small.
pub(crate) const WRITTEN_POLL: &str = "packets:64";
