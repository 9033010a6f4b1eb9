//! The WireGuard interface: its keys, its socket and its peers, shared by both directions and the control
//! socket.

use std::net::SocketAddr;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use boringtun::noise::{Packet, Tunn, TunnResult, handshake};
use rxo::driver::udp::Outbox;

use crate::keys::Key;
use crate::outside::Outside;
use crate::peer::{COOKIE_REPLY, DATA, INITIATION, Identity, Origin, Outcome, RESPONSE};
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
    /// `None` until a private key is set.
    identity: Option<Identity>,
    pub(crate) outside: Outside,
    pub(crate) peers: Peers,
}

impl Shared {
    pub(crate) fn new(outside: Outside) -> Self {
        Self(RwLock::new(Interface { identity: None, outside, peers: Peers::default() }))
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

    /// Decrypts `datagram` from `origin` into `packet`. Puts answers of the protocol into `outbox`. A packet whose source is
    /// not behind the peer that sent it is refused.
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
        let Some(mut peer) = self.peers.get(slot) else { return Outcome::Refused };
        match peer.decrypt(origin, datagram, packet, outbox) {
            Outcome::Packet(_, ip) if self.peers.slot_behind(ip) != Some(slot) => Outcome::Refused,
            outcome => outcome,
        }
    }

    /// Runs the timers of all peers, and sends their messages. Those for which the socket has no room stay in `outbox`. Call
    /// it four times a second.
    pub(crate) fn on_time(&self, outbox: &mut Outbox) {
        let Some(identity) = &self.identity else { return };
        identity.limiter.reset_count();
        let (now, mut udp) = (Instant::now(), self.outside.socket().sink());
        self.peers.for_each(|_, peer| {
            peer.on_time(now, outbox);
            udp.send(outbox);
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
        self.peers.for_each(|_, peer| {
            peer.note_handshake();
            peers.push(peer.status.clone());
        });
        let private_key = self.private_key();
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
                let Identity { private_key, public_key, .. } = self.identity.as_ref()?;
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
        let (limiter, cookie) = (&self.identity.as_ref()?.limiter, outbox.room(COOKIE_BYTES)?);
        match limiter.verify_packet(Some(from.ip()), datagram, cookie) {
            Ok(packet) => return Some(packet),
            Err(TunnResult::WriteToNetwork(_)) => outbox.push(COOKIE_BYTES, from),
            Err(_) => {}
        }
        None
    }

    /// Changes the private key. Unless the key is unchanged, all sessions start again.
    fn set_private_key(&mut self, key: Option<Key>) {
        if self.private_key() == key {
            return;
        }
        self.identity = key.map(|key| Identity::new(key, HANDSHAKES_A_SECOND));
        if let Some(own) = self.own_key().and_then(|own| self.peers.slot_of(&own)) {
            self.peers.remove(own);
        }
        self.peers.for_each(|slot, peer| peer.begin(self.identity.as_ref(), slot));
    }

    fn private_key(&self) -> Option<Key> {
        self.identity.as_ref().map(|it| it.private_key.to_bytes())
    }

    fn own_key(&self) -> Option<Key> {
        self.identity.as_ref().map(|it| it.public_key.to_bytes())
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
            peer.begin(self.identity.as_ref(), slot);
        }
        peer.status.endpoint = settings.endpoint.or(peer.status.endpoint);
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

/// Returns `key`, or `None` if it is all zeros, by which the protocol says that there is no key.
fn unless_zero(key: Key) -> Option<Key> {
    (key != Key::default()).then_some(key)
}

#[cfg(test)]
pub(crate) mod tests;
