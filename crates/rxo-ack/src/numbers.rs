//! The fields that differ from one ACK of a connection to the next.

use rxo_wire::SeqNumber;
use rxo_wire::tcp::Timestamp;

/// The fields by which one ACK of a connection differs from the ACK before it; 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckNumbers {
    /// SEG.ACK: the ACK number.
    pub ack: SeqNumber,
    /// SEG.WND: the window field of the header, in units of the window scale.
    pub window: u16,
    /// The timestamp of the ACK: TSval and TSecr. Ignored if the template has no timestamp.
    pub timestamp: Timestamp,
}
