//! Steering: chooses one of several queues of a guest for a packet.
//!
//! All packets of a flow use the same queue, so that none overtakes another. Flows are spread over the
//! queues, so that a guest can use several processors. Virtio 1.2, section 5.1.6.5.5, leaves the choice to
//! the device.

/// The offset of the EtherType in an Ethernet header, in bytes.
const TYPE_AT: usize = 12;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// The EtherTypes of VLAN tags (IEEE 802.1Q, 802.1ad).
const TAGS: [u16; 2] = [0x8100, 0x88a8];
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Returns the index of the queue, from 0 to `queues - 1`, for the packet that begins with the bytes `first`.
/// Packets without readable addresses use queue 0. Fragments are assigned by their addresses alone, because
/// only the first fragment has ports.
pub(crate) fn queue_of(first: &[u8], queues: usize) -> usize {
    if queues < 2 {
        return 0;
    }
    let Some((addresses, ports)) = ends(first) else { return 0 };
    // FNV-1a. Its last bytes change too few bits, so the hash is mixed once more (the finalizer of
    // SplitMix64).
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = addresses.iter().chain(ports).fold(0xcbf2_9ce4_8422_2325, mix);
    let mixed = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32) as usize % queues
}

/// Returns the addresses and the ports of a packet as slices. The slice of ports is empty for fragments and for
/// protocols other than TCP and UDP. `None` if the packet is not IP or is too short.
fn ends(frame: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut at = TYPE_AT;
    let mut kind = half(frame, at)?;
    for _ in 0..2 {
        if TAGS.contains(&kind) {
            at += 4;
            kind = half(frame, at)?;
        }
    }
    let packet = frame.get(at + 2..)?;
    match kind {
        IPV4 => {
            let header_bytes = usize::from(packet.first()? & 0x0f) * 4;
            let is_fragment = half(packet, 6)? & 0x3fff != 0;
            let has_ports = !is_fragment && [TCP, UDP].contains(packet.get(9)?);
            Some((packet.get(12..20)?, ports(packet, header_bytes, has_ports)))
        }
        IPV6 => {
            let has_ports = [TCP, UDP].contains(packet.get(6)?);
            Some((packet.get(8..40)?, ports(packet, 40, has_ports)))
        }
        _ => None,
    }
}

fn ports(packet: &[u8], at: usize, has_ports: bool) -> &[u8] {
    packet.get(at..at + 4).filter(|_| has_ports).unwrap_or_default()
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtio_net::samples::tcp;

    /// Builds a segment of the flow with this source port.
    fn of_flow(port: u16, payload: usize) -> Vec<u8> {
        let mut bytes = tcp(payload);
        bytes[34..36].copy_from_slice(&port.to_be_bytes());
        bytes
    }

    #[test]
    fn a_flow_keeps_its_queue_and_flows_are_spread() {
        for queues in 1..=8 {
            let mut counts = vec![0; queues];
            for port in 0..1_000 {
                let queue = queue_of(&of_flow(port, 10), queues);
                assert_eq!(queue, queue_of(&of_flow(port, 1_400), queues));
                // The headers of an aggregate are a piece of their own.
                assert_eq!(queue, queue_of(&of_flow(port, 10)[..54], queues));
                counts[queue] += 1;
            }
            let fair = 1_000 / queues;
            assert!(counts.iter().all(|n| (fair / 2..=fair * 2).contains(n)), "{counts:?}");
        }
    }

    #[test]
    fn fragments_of_a_packet_stay_together() {
        let fragment = |offset: u8, port| {
            let mut bytes = of_flow(port, 100);
            bytes[21] = offset;
            bytes
        };
        let first = queue_of(&fragment(1, 7), 8);
        assert!((0..100).all(|port| queue_of(&fragment(2, port), 8) == first));
    }

    #[test]
    fn any_bytes_have_a_queue() {
        let whole = of_flow(7, 10);
        for bytes in (0..whole.len()).map(|end| &whole[..end]) {
            assert!(queue_of(bytes, 3) < 3);
        }
        assert_eq!(queue_of(&[0xff; 60], 3), 0);
        let tagged = [&whole[..12], &[0x81, 0, 0, 5], &whole[12..]].concat();
        assert_eq!(queue_of(&tagged, 8), queue_of(&whole, 8));
    }
}
