//! What differs from one ACK of a connection to the next.

use rxo_wire::SeqNumber;
use rxo_wire::tcp::Timestamp;

/// The fields of one ACK that its predecessor does not have. 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckNumbers {
    /// SEG.ACK.
    pub ack: SeqNumber,
    /// SEG.WND as it shall stand in the header, scaled already.
    pub window: u16,
    /// TSval and TSecr; without meaning where the template has no timestamp.
    pub timestamp: Timestamp,
}
