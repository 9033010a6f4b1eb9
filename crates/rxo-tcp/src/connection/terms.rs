//! What the owner of a connection decides for it. By default nothing: a connection is by itself.
//!
//! Separate so that no part of a connection asks who its owner is. The owner of several that send one stream sets these
//! (`group.rs`), and each part reads the one that it is about.

use rxo_wire::SeqNumber;

/// The terms of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    /// ISS, if the owner has chosen it. The owner then also sets the size of the send buffer, and none follows the path.
    pub(crate) iss: Option<SeqNumber>,
    /// The owner sends all new text, in segments whose size it chooses. The connection only repeats what is lost.
    pub(crate) owner_sends: bool,
    /// The least time before a tail loss probe, in nanoseconds.
    pub(crate) least_probe_wait_ns: u32,
}
