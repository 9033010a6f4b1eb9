//! The frame by which a device announces a guest after its migration, so that switches learn where it is now.
//!
//! The only frame that a device makes by itself: the front end gives the address and leaves the rest to it
//! (`VHOST_USER_SEND_RARP`).

/// The length of an announcement, in bytes: that of the shortest frame.
pub(super) const ANNOUNCEMENT_BYTES: usize = 60;

/// Returns a request of reverse ARP (RFC 903) from this Ethernet address for itself, to all.
pub(super) fn announcement(address: [u8; 6]) -> [u8; ANNOUNCEMENT_BYTES] {
    let mut frame = [0; ANNOUNCEMENT_BYTES];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&address);
    // The type, Ethernet and IPv4 with the lengths of their addresses, and the operation.
    frame[12..22].copy_from_slice(&[0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3]);
    frame[22..28].copy_from_slice(&address);
    frame[32..38].copy_from_slice(&address);
    frame
}
