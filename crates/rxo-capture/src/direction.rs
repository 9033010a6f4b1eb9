//! The direction of a captured packet. This module is separate from the record, because options and link types
//! need the direction, too.

/// The direction of a packet, as the capturing machine saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The capturing machine received the packet.
    In,
    /// The capturing machine sent the packet.
    Out,
}
