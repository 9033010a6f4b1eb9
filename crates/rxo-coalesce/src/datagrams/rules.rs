//! Static rules for datagrams: decide whether a datagram may be coalesced at all.

use rxo_wire::{Offsets, Parsed, UdpDatagram};

use crate::candidate::check_ip;
use crate::{BypassReason, Policy};

/// Destination ports of tunnels that must not be coalesced, because the kernel coalesces their inner packets or
/// their sockets take one packet at a time: L2TP, GTP-U, IPsec, VXLAN (with Linux's old port), VXLAN-GPE, GUE,
/// Geneve, MPLS. Linux instead looks for an open socket with such a tunnel. Datagrams to any other port are
/// coalesced.
const TUNNELS: [u16; 9] = [1_701, 2_152, 4_500, 4_789, 4_790, 6_080, 6_081, 6_635, 8_472];

/// Applies the static rules to one datagram. Does not verify its checksum, because that needs the payload.
///
/// # Errors
/// The first rule that the datagram breaks, as the reason to deliver it untouched.
pub(crate) fn datagram(
    parsed: &Parsed,
    udp: &UdpDatagram,
    policy: &Policy,
) -> Result<(), BypassReason> {
    if !parsed.ip.checksum_ok {
        return Err(BypassReason::BadIpChecksum);
    }
    if parsed.ip.has_options || parsed.ip.reserved_bit {
        check_ip(parsed, policy)?;
    }
    with_datagram(parsed.key.destination_port(), udp, parsed.at, policy)
}

/// Applies the static rules to a datagram to `port`. The caller has already checked the IP header.
///
/// # Errors
/// The first rule that the datagram breaks, as in [`datagram`].
#[inline]
pub(crate) fn with_datagram(
    port: u16,
    udp: &UdpDatagram,
    at: Offsets,
    policy: &Policy,
) -> Result<(), BypassReason> {
    if TUNNELS.contains(&port) {
        return Err(BypassReason::UdpTunnel);
    }
    if at.payload_bytes() == 0 || u32::from(udp.length) != at.segment_bytes() {
        return Err(BypassReason::UdpLength);
    }
    if udp.checksum == 0 {
        return Err(BypassReason::UdpChecksumZero);
    }
    if at.end - at.network > policy.max_bytes || at.payload_bytes() > policy.buffer_bytes {
        return Err(BypassReason::TooLarge);
    }
    Ok(())
}
