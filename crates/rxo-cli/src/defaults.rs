//! Default values of flags, each with its reason.

pub(crate) use rxo::live::defaults::{LIVE_MAX_SEGMENTS, POLICY, live};

/// Default of `rxo analyze --poll`: a common setting of network cards that moderate their interrupts.
pub(crate) const STUDIED_POLL: &str = "time:50us";

/// Default of `rxo coalesce --poll`: polls of 64 packets, the full budget of a host. Large polls make the
/// output file small.
pub(crate) const WRITTEN_POLL: &str = "packets:64";
