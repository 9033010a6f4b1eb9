//! Values that hold unless the user says otherwise, each with its reason.

pub(crate) use rxo::live::defaults::{LIVE_MAX_SEGMENTS, POLICY, live};

/// The polls of the host in `rxo analyze`: a common setting of cards that moderate their interrupts.
pub(crate) const STUDIED_POLL: &str = "time:50us";

/// The polls in `rxo coalesce`: as long as a host's budget allows, so that the file becomes small.
pub(crate) const WRITTEN_POLL: &str = "packets:64";
