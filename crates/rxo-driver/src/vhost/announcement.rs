//! The frame by which a device announces a guest after its migration, so that switches learn the guest's new
//! port.
//!
//! The front end sends only the guest's address (`VHOST_USER_SEND_RARP`), and the device builds the frame. The
//! device generates no other frames.

/// The length of an announcement, in bytes: the length of the shortest Ethernet frame without its check
/// sequence.
pub(super) const ANNOUNCEMENT_BYTES: usize = 60;

/// Returns a reverse ARP request (RFC 903) from this Ethernet address, asking for its own IP address, to the
/// broadcast address.
pub(super) fn announcement(address: [u8; 6]) -> [u8; ANNOUNCEMENT_BYTES] {
    let mut frame = [0; ANNOUNCEMENT_BYTES];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&address);
    // The EtherType; then Ethernet and IPv4 with their address lengths, and the operation.
    frame[12..22].copy_from_slice(&[0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3]);
    frame[22..28].copy_from_slice(&address);
    frame[32..38].copy_from_slice(&address);
    frame
}
