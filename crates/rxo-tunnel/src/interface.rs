//! The WireGuard interface: its keys, its socket and its peers, shared by both directions and the control
//! socket.

use std::net::SocketAddr;
use std::sync::{Arc, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use boringtun::noise::rate_limiter::RateLimiter;
use boringtun::noise::{Packet, Tunn, TunnResult, handshake};
use boringtun::x25519::{PublicKey, StaticSecret};
use rxo::driver::udp::Outbox;

use crate::keys::Key;
use crate::outside::Outside;
use crate::peer::{COOKIE_REPLY, DATA, INITIATION, Identity, Origin, Outcome, Peer, RESPONSE};
use crate::peers::Peers;
use crate::uapi::{Change, PeerSettings, Refusal, Settings, Status};

/// The number of handshake messages per second that are answered without a cookie. Each costs about 0.2 ms of
/// CPU time. Beyond this rate, a sender gets a cookie, and must return it to prove that it receives at its
/// address.
const HANDSHAKES_A_SECOND: u64 = 100;

/// The length of a cookie reply, in bytes.
const COOKIE_BYTES: usize = 64;

/// The interface, protected by a lock. Threads that move packets hold the read lock for a batch; a settings request
/// takes the write lock for one peer at a time. Each peer also has its own lock, because encryption and decryption
/// change its session.
pub(crate) struct Shared(RwLock<Interface>);

/// The state of the interface: its keys, its UDP socket and its peers.
pub(crate) struct Interface {
    keys: Option<Keys>,
    pub(crate) outside: Outside,
    peers: Peers,
}

/// The values that are derived from the private key.
struct Keys {
    identity: Identity,
    /// Limits the rate of handshake messages from all senders together.
    limiter: RateLimiter,
}

impl Shared {
    pub(crate) fn new(outside: Outside) -> Self {
        Self(RwLock::new(Interface { keys: None, outside, peers: Peers::default() }))
    }

    /// Applies the changes of a settings request.
    ///
    /// # Errors
    /// If the system refuses the port or the mark. In that case the private key is already changed, but peers
    /// are not.
    pub(crate) fn apply(&self, settings: &Settings) -> Result<(), Refusal> {
        self.write().apply(settings)?;
        // The lock is taken again for each peer, so that packets pass while thousands of peers are added.
        settings.peers.iter().for_each(|peer| self.write().apply_to_peer(peer));
        Ok(())
    }

    /// Locks the interface against changes. A thread that holds this lock must not call this function again: a
    /// writer that waits between the two calls would cause a deadlock.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Interface> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Interface> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Interface {
    /// Returns the slot of the peer that is responsible for the destination of `packet`; `None` if there is none. All
    /// packets of a GSO frame have the same destination.
    pub(crate) fn slot_for(&self, packet: &[u8]) -> Option<u32> {
        self.peers.slot_behind(Tunn::dst_address(packet)?)
    }

    /// Locks the peer in `slot`; `None` if the slot is unused.
    pub(crate) fn peer(&self, slot: u32) -> Option<MutexGuard<'_, Peer>> {
        self.peers.get(slot)
    }

    /// Decrypts `datagram` from `origin` into `packet`. Puts protocol messages that answer the datagram into `outbox`.
    /// Refuses a packet whose source address is not among the allowed addresses of the sending peer.
    pub(crate) fn decrypt(
        &self,
        origin: Origin,
        datagram: &[u8],
        packet: &mut [u8],
        outbox: &mut Outbox,
    ) -> Outcome {
        let Some(slot) = self.sender(origin.from, datagram, outbox) else {
            return Outcome::Refused;
        };
        let Some(mut peer) = self.peer(slot) else { return Outcome::Refused };
        match peer.decrypt(origin, datagram, packet, outbox) {
            Outcome::Packet(_, ip) if self.peers.slot_behind(ip) != Some(slot) => Outcome::Refused,
            outcome => outcome,
        }
    }

    /// Runs the protocol timers of all peers, and calls `send` after each peer. Must be called four times per
    /// second.
    pub(crate) fn on_time(&self, outbox: &mut Outbox, mut send: impl FnMut(&mut Outbox)) {
        let Some(keys) = &self.keys else { return };
        keys.limiter.reset_count();
        let now = Instant::now();
        self.peers.for_each(|_, peer| {
            peer.on_time(now, outbox);
            send(outbox);
        });
    }

    /// Applies the changes of a settings request, except the changes of individual peers.
    fn apply(&mut self, settings: &Settings) -> Result<(), Refusal> {
        if let Some(key) = settings.private_key {
            self.set_private_key(unless_zero(key));
        }
        if let Some(port) = settings.listen_port {
            self.outside.set_port(port).map_err(|_| Refusal::PortInUse)?;
        }
        if let Some(mark) = settings.mark {
            self.outside.set_mark(mark).map_err(|_| Refusal::NotPermitted)?;
        }
        if settings.replaces_peers {
            self.peers.clear();
        }
        Ok(())
    }

    /// Returns the settings and counters of the interface and its peers.
    pub(crate) fn status(&self) -> Status {
        let mut peers = Vec::new();
        self.peers.for_each(|_, peer| peers.push(peer.status()));
        let private_key = self.keys.as_ref().map(|it| it.identity.private_key.to_bytes());
        Status { private_key, listen_port: self.outside.port(), mark: self.outside.mark(), peers }
    }

    /// Returns the slot of the peer that `datagram` claims as its sender; the datagram is not authenticated
    /// yet. `None` if there is no such peer, or if the sender must first prove its address: it then gets a
    /// cookie.
    #[inline]
    fn sender(&self, from: SocketAddr, datagram: &[u8], outbox: &mut Outbox) -> Option<u32> {
        let index = |at: usize| {
            let bytes = datagram.get(at..at + 4)?.try_into().ok()?;
            Some(Peers::slot_by_index(u32::from_le_bytes(bytes)))
        };
        match *datagram.first()? {
            DATA | COOKIE_REPLY => index(4),
            RESPONSE => {
                self.admit(from, datagram, outbox)?;
                index(8)
            }
            INITIATION => {
                let Packet::HandshakeInit(message) = self.admit(from, datagram, outbox)? else {
                    return None;
                };
                let Identity { private_key, public_key, .. } = &self.keys.as_ref()?.identity;
                let half = handshake::parse_handshake_anon(private_key, public_key, &message);
                self.peers.slot_of(&half.ok()?.peer_static_public)
            }
            _ => None,
        }
    }

    /// Verifies the MAC of a handshake message, and under load also the cookie in it. Returns the parsed
    /// message; `None` if it is refused. If only a valid cookie is missing, puts a cookie reply for the sender
    /// into `outbox`.
    fn admit<'d>(
        &self,
        from: SocketAddr,
        datagram: &'d [u8],
        outbox: &mut Outbox,
    ) -> Option<Packet<'d>> {
        let mut cookie = [0; COOKIE_BYTES];
        let limiter = &self.keys.as_ref()?.limiter;
        match limiter.verify_packet(Some(from.ip()), datagram, &mut cookie) {
            Ok(packet) => Some(packet),
            Err(TunnResult::WriteToNetwork(cookie)) => {
                outbox.room(cookie.len())?.copy_from_slice(cookie);
                outbox.push(COOKIE_BYTES, from);
                None
            }
            Err(_) => None,
        }
    }

    /// Changes the private key. Unless the key is unchanged, all sessions start again.
    fn set_private_key(&mut self, key: Option<Key>) {
        if self.keys.as_ref().map(|it| it.identity.private_key.to_bytes()) == key {
            return;
        }
        self.keys = key.map(Keys::new);
        if let Some(own) = self.own_key().and_then(|own| self.peers.slot_of(&own)) {
            self.peers.remove(own);
        }
        let identity = self.keys.as_ref().map(|keys| &keys.identity);
        self.peers.for_each(|slot, peer| peer.begin(identity, slot));
    }

    fn own_key(&self) -> Option<Key> {
        self.keys.as_ref().map(|keys| keys.identity.public_key.to_bytes())
    }

    fn apply_to_peer(&mut self, settings: &PeerSettings) {
        let (now, known) = (Instant::now(), self.peers.slot_of(&settings.public_key));
        if settings.is_removed {
            known.into_iter().for_each(|slot| self.peers.remove(slot));
            return;
        }
        // An interface is not its own peer, as in the kernel's WireGuard.
        let is_own = self.own_key() == Some(settings.public_key);
        if known.is_none() && (settings.only_updates || is_own) {
            return;
        }
        let slot = known.unwrap_or_else(|| self.peers.add(settings.public_key, now));
        let Some(peer) = self.peers.get_mut(slot) else { return };
        let preshared = settings.preshared_key.map(unless_zero);
        if preshared.is_some_and(|key| peer.set_preshared_key(key)) || known.is_none() {
            peer.begin(self.keys.as_ref().map(|keys| &keys.identity), slot);
        }
        settings.endpoint.into_iter().for_each(|endpoint| peer.set_endpoint(endpoint));
        settings.keepalive.into_iter().for_each(|seconds| peer.set_keepalive(seconds, now));
        if settings.replaces_allowed {
            self.peers.disallow_all(slot);
        }
        for (change, network) in &settings.allowed {
            match change {
                Change::Add => self.peers.allow(slot, *network),
                Change::Remove => self.peers.disallow(slot, *network),
            }
        }
    }
}

impl Keys {
    fn new(key: Key) -> Self {
        let private_key = StaticSecret::from(key);
        let public_key = PublicKey::from(&private_key);
        let limiter = RateLimiter::new(&public_key, HANDSHAKES_A_SECOND);
        let unlimited = Arc::new(RateLimiter::new(&public_key, u64::MAX));
        Self { identity: Identity { private_key, public_key, unlimited }, limiter }
    }
}

/// Returns `key`, or `None` if all its bytes are zero: in the protocol of the control socket, zeros mean "no
/// key".
fn unless_zero(key: Key) -> Option<Key> {
    (key != Key::default()).then_some(key)
}

#[cfg(test)]
pub(crate) mod tests;
