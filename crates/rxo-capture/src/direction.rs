//! The direction of a captured packet. Separate from the record, because options and link types depend on it.

/// The direction of a packet, seen from the capturing machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Received.
    In,
    /// Sent.
    Out,
}
