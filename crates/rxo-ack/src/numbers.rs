//! The fields that differ from one ACK of a connection to the next.

use rxo_wire::SeqNumber;
use rxo_wire::tcp::Timestamp;

/// The fields in which an ACK differs from the one before it; 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckNumbers {
    /// The acknowledgement number (SEG.ACK).
    pub ack: SeqNumber,
    /// The window (SEG.WND) as in the header, already scaled.
    pub window: u16,
    /// TSval and TSecr. Ignored if the template has no timestamp.
    pub timestamp: Timestamp,
}
