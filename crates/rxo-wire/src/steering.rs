//! Assigns each connection to one of several shards.
//!
//! Separate because two independent sides must compute the same shard: a device that distributes frames to
//! shards, and a host that chooses a local port so that the peer's packets arrive at its own shard. Therefore the
//! function is symmetric, has no secret, and uses only operations of a packet socket's filter: 32-bit words,
//! exclusive or, one multiplication. A peer that chooses its ports can put all its connections on one shard. Such
//! a peer can overload this shard, but no other.

use crate::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, FlowKey, PROTOCOL_TCP, ethernet};

/// Returns the shard of the connection `key`, a number below `shards`; equal for both directions. Ignores
/// VLANs. 0 if `shards` is 0.
///
/// # Examples
/// ```
/// use rxo_wire::{FlowKey, shard_of};
///
/// let key = FlowKey::v4(0x0a00_0001, 0x0a00_0002, 40_000 << 16 | 443, 0);
/// assert!(shard_of(&key, 4) < 4);
/// assert_eq!(shard_of(&key, 4), shard_of(&key.reversed(), 4));
/// ```
#[must_use]
pub const fn shard_of(key: &FlowKey, shards: u32) -> u32 {
    let hash = key.folded().wrapping_mul(STEERING_MULTIPLIER) >> STEERING_SHIFT;
    match hash.checked_rem(shards) {
        Some(shard) => shard,
        None => 0,
    }
}

/// Returns the queue of an Ethernet frame, a number below `queues`, or 0 if there are none: of a whole TCP packet the
/// shard of its connection ([`shard_of`]), of every other IP packet one that its addresses determine, and 0 for
/// everything else. Equal for both directions. It is the rule by which packet sockets and TAPs of `rxo-driver` choose,
/// except for frames with two VLAN tags, for which these choose 0.
///
/// # Examples
/// ```
/// use rxo_wire::queue_of;
///
/// let arp = [&[0xff; 12][..], &[0x08, 0x06], &[0; 46]].concat();
/// assert_eq!(queue_of(&arp, 4), 0);
/// ```
#[must_use]
pub fn queue_of(frame: &[u8], queues: u32) -> u32 {
    steering_key(frame).map_or(0, |key| shard_of(&key, queues))
}

/// Returns the part of a frame by which its queue is chosen; `None` if the frame is no IP packet.
fn steering_key(frame: &[u8]) -> Option<FlowKey> {
    let link = ethernet::read(frame).ok()?;
    let packet = frame.get(link.network..)?;
    let word = |at: usize| packet.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word));
    match link.ethertype {
        ETHERTYPE_IPV4 => {
            let header: &[u8; 20] = packet.first_chunk()?;
            let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
            let is_whole = header[9] == PROTOCOL_TCP && !is_fragment;
            let ports = if is_whole { word(4 * usize::from(header[0] & 0xf))? } else { 0 };
            Some(FlowKey::v4(word(12)?, word(16)?, ports, 0))
        }
        ETHERTYPE_IPV6 => {
            let addresses = packet.get(8..)?.first_chunk()?;
            let ports = if packet[6] == PROTOCOL_TCP { word(40)? } else { 0 };
            Some(FlowKey::v6(addresses, ports, 0))
        }
        _ => None,
    }
}

/// The multiplier for the exclusive or of all 32-bit words of both addresses and of both ports: 2³² divided
/// by the golden ratio. Ports that are all even, as a system may choose them, still use all shards.
pub const STEERING_MULTIPLIER: u32 = 0x9e37_79b1;
/// The number of bits by which the lower half of the product is shifted right to select the shard.
pub const STEERING_SHIFT: u32 = 16;

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn keys() -> impl Iterator<Item = FlowKey> {
        (0..4_096).flat_map(|port: u32| {
            let addresses: [u8; 32] = core::array::from_fn(|at| (at as u32 * 7 + port % 5) as u8);
            let ports = (port * 2) << 16 | 443;
            [FlowKey::v4(0x0a00_0001, 0x0a00_0002, ports, 0), FlowKey::v6(&addresses, ports, 0)]
        })
    }

    #[test]
    fn both_directions_belong_to_one_shard() {
        for (key, shards) in keys().zip((1..9).cycle()) {
            let shard = shard_of(&key, shards);
            assert!(shard < shards);
            assert_eq!(shard, shard_of(&key.reversed(), shards), "{key:?}");
            assert_eq!(shard, shard_of(&key.on_device_vlan(5), shards), "{key:?}");
        }
        assert_eq!(shard_of(&FlowKey::NONE, 0), 0);
    }

    /// Connections are spread evenly even if all ports are even numbers.
    #[test]
    fn connections_are_spread_evenly() {
        for shards in 2..9 {
            let mut counts = [0_usize; 8];
            keys().for_each(|key| counts[shard_of(&key, shards) as usize] += 1);
            let fair = 8_192 / shards as usize;
            let is_fair = |count: &usize| count.abs_diff(fair) < fair / 4;
            assert!(counts[..shards as usize].iter().all(is_fair), "{shards}: {counts:?}");
        }
    }

    /// Only whole TCP packets have ports; both directions of everything meet.
    #[test]
    fn a_frame_has_the_queue_of_its_connection_or_of_its_addresses() {
        let v4 = |protocol: u8, fragment: u8, ports: u32| {
            let header =
                [0x46, 0, 0, 44, 0, 0, fragment, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            [&[2; 12][..], &[8, 0], &header, &[1; 4], &ports.to_be_bytes(), &[0; 16]].concat()
        };
        let v6 = |protocol: u8, ports: u32| {
            let header = [0x60, 0, 0, 0, 0, 20, protocol, 64];
            let addresses: [u8; 32] = core::array::from_fn(|at| at as u8 * 5);
            [&[2; 12][..], &[0x86, 0xdd], &header, &addresses, &ports.to_be_bytes(), &[0; 16]]
                .concat()
        };
        let tagged = |mut frame: Vec<u8>| {
            frame.splice(12..12, [0x81, 0, 0, 7]);
            frame
        };
        let addresses: [u8; 32] = core::array::from_fn(|at| at as u8 * 5);
        for ports in (40_000..40_100).map(|port: u32| port << 16 | 443) {
            let of_v4 = |ports| shard_of(&FlowKey::v4(0x0a00_0001, 0x0a00_0002, ports, 0), 5);
            let of_v6 = |ports| shard_of(&FlowKey::v6(&addresses, ports, 0), 5);
            let rows = [
                (v4(6, 0, ports), of_v4(ports)),
                (v4(6, 0, ports.rotate_left(16)), of_v4(ports)),
                (tagged(v4(6, 0x40, ports)), of_v4(ports)),
                (v4(6, 0x20, ports), of_v4(0)),
                (v4(17, 0, ports), of_v4(0)),
                (v6(6, ports), of_v6(ports)),
                (v6(44, ports), of_v6(0)),
            ];
            for (frame, queue) in rows {
                assert_eq!(queue_of(&frame, 5), queue, "{frame:?}");
                assert_eq!(queue_of(&frame, 1), 0);
                // No length is a fault.
                (0..frame.len()).for_each(|bytes| assert!(queue_of(&frame[..bytes], 5) < 5));
            }
        }
    }

    /// Computes the shard step by step, as the filter of a packet socket does.
    #[test]
    fn it_is_what_it_says() {
        let key = FlowKey::v4(0x0a00_0001, 0xc0a8_0105, 40_000 << 16 | 80, 0);
        let words = 0x0a00_0001_u32 ^ 0xc0a8_0105 ^ 40_000 ^ 80;
        assert_eq!(shard_of(&key, 7), (words.wrapping_mul(0x9e37_79b1) >> 16) % 7);
        let addresses: [u8; 32] = core::array::from_fn(|at| at as u8 * 5);
        let words = addresses.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap()));
        let words = words.fold(40_000 ^ 80, |all, word| all ^ word);
        let key = FlowKey::v6(&addresses, 40_000 << 16 | 80, 0);
        assert_eq!(shard_of(&key, 7), (words.wrapping_mul(0x9e37_79b1) >> 16) % 7);
    }
}
