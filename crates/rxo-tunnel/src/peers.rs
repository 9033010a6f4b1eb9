//! The table of peers. Finds a peer by its public key, by the receiver index in a datagram, or by an allowed
//! address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ip_network::IpNetwork;
use ip_network_table::IpNetworkTable;

use crate::keys::Key;
use crate::peer::Peer;
use crate::waiting::lock;

/// The peers of an interface, each in a numbered slot. The receiver index in a peer's datagrams contains the
/// slot, so one look-up finds the peer of a datagram. The slot of a removed peer is reused; datagrams of the
/// removed peer then fail to decrypt.
#[derive(Default)]
pub(crate) struct Peers {
    slots: Vec<Option<Mutex<Peer>>>,
    unused: Vec<u32>,
    by_key: HashMap<Key, u32>,
    /// The slots of peers by allowed network. The network with the longest prefix that contains an address
    /// determines its peer.
    by_address: IpNetworkTable<u32>,
}

/// The number of low bits of a receiver index that distinguish the sessions of one peer; the other bits are the
/// slot.
const SESSION_BITS: u32 = 8;

impl Peers {
    /// Returns the slot of the peer with this public key; `None` if there is none.
    pub(crate) fn slot_of(&self, key: &Key) -> Option<u32> {
        self.by_key.get(key).copied()
    }

    /// Returns the slot that the receiver index `index` of a datagram contains.
    pub(crate) const fn slot_by_index(index: u32) -> u32 {
        index >> SESSION_BITS
    }

    /// Returns the slot of the peer whose allowed networks contain `ip`; the longest prefix wins. `None` if no
    /// peer's networks contain `ip`.
    #[inline]
    pub(crate) fn slot_behind(&self, ip: IpAddr) -> Option<u32> {
        self.by_address.longest_match(ip).map(|(_, slot)| *slot)
    }

    /// Locks the peer in `slot`; `None` if the slot is unused.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<MutexGuard<'_, Peer>> {
        self.slots.get(slot as usize)?.as_ref().map(lock)
    }

    /// Returns the peer in `slot` without locking it, because `&mut self` excludes other threads. `None` if the
    /// slot is unused.
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut Peer> {
        let peer = self.slots.get_mut(slot as usize)?.as_mut()?;
        Some(peer.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls `each` with the slot of each peer and the locked peer.
    pub(crate) fn for_each(&self, mut each: impl FnMut(u32, &mut Peer)) {
        for (slot, peer) in (0..).zip(&self.slots) {
            peer.iter().for_each(|peer| each(slot, &mut lock(peer)));
        }
    }

    /// Adds a peer with the public key `key`, and returns its slot. The table must not contain a peer with this
    /// key.
    pub(crate) fn add(&mut self, key: Key, now: Instant) -> u32 {
        let slot = self.unused.pop().unwrap_or(self.slots.len() as u32);
        if self.slots.len() == slot as usize {
            self.slots.push(None);
        }
        self.slots[slot as usize] = Some(Mutex::new(Peer::new(key, now)));
        self.by_key.insert(key, slot);
        slot
    }

    /// Removes the peer in `slot` with its allowed addresses.
    pub(crate) fn remove(&mut self, slot: u32) {
        self.disallow_all(slot);
        if let Some(peer) = self.get_mut(slot) {
            let key = peer.status.public_key;
            self.by_key.remove(&key);
            self.slots[slot as usize] = None;
            self.unused.push(slot);
        }
    }

    /// Removes all peers.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds `network` to the allowed networks of the peer in `slot`. If another peer had this network, it is
    /// removed there.
    pub(crate) fn allow(&mut self, slot: u32, network: IpNetwork) {
        let before = self.by_address.insert(network, slot);
        if before == Some(slot) {
            return;
        }
        if let Some(former) = before.and_then(|former| self.get_mut(former)) {
            former.status.allowed.retain(|it| *it != network);
        }
        if let Some(peer) = self.get_mut(slot) {
            peer.status.allowed.push(network);
        }
    }

    /// Removes `network` from the allowed networks of the peer in `slot`, if it is among them.
    pub(crate) fn disallow(&mut self, slot: u32, network: IpNetwork) {
        if self.by_address.exact_match(network) == Some(&slot) {
            self.by_address.remove(network);
            self.get_mut(slot)
                .into_iter()
                .for_each(|it| it.status.allowed.retain(|it| *it != network));
        }
    }

    /// Removes all allowed networks of the peer in `slot`.
    pub(crate) fn disallow_all(&mut self, slot: u32) {
        let networks = self.get_mut(slot).map(|peer| std::mem::take(&mut peer.status.allowed));
        for network in networks.into_iter().flatten() {
            self.by_address.remove(network);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::network::Network;

    fn network(text: &str) -> IpNetwork {
        text.parse::<Network>().unwrap().all
    }

    fn with(count: u8) -> Peers {
        let mut peers = Peers::default();
        for key in 0..count {
            assert_eq!(peers.add([key; 32], Instant::now()), u32::from(key));
        }
        peers
    }

    fn allowed(peers: &mut Peers, slot: u32) -> Vec<String> {
        peers.get_mut(slot).unwrap().status.allowed.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_longest_network_decides() {
        let mut peers = with(3);
        peers.allow(0, network("0.0.0.0/0"));
        peers.allow(1, network("10.0.0.0/8"));
        peers.allow(2, network("10.1.0.0/16"));
        let slot = |ip: [u8; 4]| peers.slot_behind(ip.into());
        assert_eq!(
            [slot([9, 0, 0, 1]), slot([10, 2, 0, 1]), slot([10, 1, 9, 9])],
            [0, 1, 2].map(Some)
        );
        assert_eq!(peers.slot_behind("fd00::1".parse().unwrap()), None);
    }

    #[test]
    fn a_network_belongs_to_the_last_peer_that_got_it() {
        let mut peers = with(2);
        let all = network("10.0.0.0/8");
        peers.allow(0, all);
        peers.allow(0, all);
        assert_eq!(allowed(&mut peers, 0), ["10.0.0.0/8"]);
        peers.allow(1, all);
        assert!(allowed(&mut peers, 0).is_empty());
        peers.disallow(0, all);
        assert_eq!(allowed(&mut peers, 1), ["10.0.0.0/8"]);
        peers.disallow(1, all);
        assert_eq!(peers.slot_behind([10, 0, 0, 1].into()), None);
    }

    #[test]
    fn a_removed_peer_leaves_nothing_and_its_slot_is_used_again() {
        let mut peers = with(2);
        peers.allow(0, network("10.0.0.0/8"));
        peers.remove(0);
        assert_eq!(
            (peers.slot_of(&[0; 32]), peers.slot_behind([10, 0, 0, 1].into())),
            (None, None)
        );
        assert!(peers.get_mut(0).is_none() && peers.get_mut(7).is_none());
        assert_eq!(peers.add([9; 32], Instant::now()), 0);
        assert!(allowed(&mut peers, 0).is_empty());
    }

    proptest! {
        /// Compares the table with a list of networks that is searched.
        #[test]
        fn it_is_a_list_of_networks(
            changes in proptest::collection::vec((0_u32..4, any::<[u8; 2]>(), 0_u8..17, 0_u8..5), 0..60),
            address: [u8; 2],
        ) {
            let mut peers = with(4);
            let mut model: Vec<(IpNetwork, u32)> = Vec::new();
            for (slot, start, bits, kind) in changes {
                let network = IpNetwork::new_truncate([start[0], start[1], 0, 0], bits).unwrap();
                match kind {
                    0 => {
                        peers.disallow_all(slot);
                        model.retain(|(_, owner)| *owner != slot);
                    }
                    1 => {
                        peers.disallow(slot, network);
                        model.retain(|it| *it != (network, slot));
                    }
                    _ => {
                        peers.allow(slot, network);
                        model.retain(|(it, _)| *it != network);
                        model.push((network, slot));
                    }
                }
            }
            let ip = IpAddr::from([address[0], address[1], 3, 4]);
            let longest = model.iter().filter(|it| it.0.contains(ip)).max_by_key(|it| it.0.netmask());
            prop_assert_eq!(peers.slot_behind(ip), longest.map(|it| it.1));
            for slot in 0..4 {
                let mut expected: Vec<_> = model.iter().filter(|it| it.1 == slot).map(|it| it.0).collect();
                expected.sort();
                let mut found = peers.get_mut(slot).unwrap().status.allowed.clone();
                found.sort();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
