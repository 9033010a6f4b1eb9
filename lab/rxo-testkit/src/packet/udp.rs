//! Setters of UDP. They do not affect other packets.

use super::{Body, Packet};

impl Packet {
    /// Makes the segment a datagram with the same payload.
    #[must_use]
    pub fn as_datagram(mut self) -> Self {
        self.body = Body::Udp;
        self
    }

    /// Returns `true` if the packet is a UDP datagram.
    #[must_use]
    pub fn is_datagram(&self) -> bool {
        self.body == Body::Udp
    }

    /// Removes the checksum: the field is 0.
    #[must_use]
    pub fn no_checksum(mut self) -> Self {
        self.has_no_checksum = true;
        self
    }

    /// Makes the UDP length wrong by `bytes`.
    #[must_use]
    pub fn udp_length_lie(mut self, bytes: i16) -> Self {
        self.udp_length_lie = bytes;
        self
    }
}
