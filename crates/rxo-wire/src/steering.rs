//! Assigns each connection to one of several shards.
//!
//! Separate because two independent sides must compute the same shard: a device that distributes frames to
//! shards, and a host that chooses a local port so that the peer's packets arrive at its own shard. Therefore the
//! function is symmetric, has no secret, and uses only operations of a packet socket's filter: 32-bit words,
//! exclusive or, one multiplication. A peer that chooses its ports can put all its connections on one shard. Such
//! a peer can overload this shard, but no other.

use crate::FlowKey;

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

/// The multiplier for the exclusive or of all 32-bit words of both addresses and of both ports: 2³² divided by
/// the golden ratio. Even if a system chooses only even ports, all shards are used.
pub const STEERING_MULTIPLIER: u32 = 0x9e37_79b1;
/// The number of bits by which the lower half of the product is shifted right to select the shard.
pub const STEERING_SHIFT: u32 = 16;

#[cfg(test)]
mod tests {
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
        assert_eq!(shard_of(&FlowKey::NOBODY, 0), 0);
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
