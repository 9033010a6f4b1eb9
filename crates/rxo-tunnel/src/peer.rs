//! One peer of the interface: its session, endpoint and counters.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use boringtun::noise::rate_limiter::RateLimiter;
use boringtun::noise::{Tunn, TunnResult};
use boringtun::x25519::{PublicKey, StaticSecret};
use ip_network::IpNetwork;
use rxo::driver::udp::Outbox;

use crate::keys::Key;
use crate::uapi::PeerStatus;

/// The number of bytes that the tunnel adds to a packet in its datagram, without IP and UDP headers.
const OVERHEAD_BYTES: usize = 32;

/// The length of the longest handshake message, in bytes.
const HANDSHAKE_BYTES: usize = 148;

/// The message types of the protocol, found in the first byte of a datagram.
pub(crate) const INITIATION: u8 = 1;
pub(crate) const RESPONSE: u8 = 2;
pub(crate) const COOKIE_REPLY: u8 = 3;
pub(crate) const DATA: u8 = 4;

/// The largest difference between two computed times of one handshake. The computed times differ because `boringtun`
/// only reports the age of a handshake, rounded to the interval of its timers.
const SAME_HANDSHAKE: Duration = Duration::from_secs(1);

/// A peer of the interface.
pub(crate) struct Peer {
    public_key: Key,
    preshared_key: Option<Key>,
    /// The session of the protocol; `None` while the interface has no private key.
    tunn: Option<Tunn>,
    /// `true` if packets wait for the handshake to complete.
    has_waiting: bool,
    /// The address from which the peer last sent a valid message, or the configured address; `None` if there is
    /// neither.
    endpoint: Option<SocketAddr>,
    /// The number of the last batch that contained a valid message of this peer.
    heard_in: u64,
    keepalive: u16,
    keepalive_at: Instant,
    pub(crate) allowed: Vec<IpNetwork>,
    handshake_at: Duration,
    sent_bytes: u64,
    received_bytes: u64,
}

/// The sender of a datagram, and the number of the batch in which it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) from: SocketAddr,
    pub(crate) number: u64,
}

/// The outcome of encrypting a packet or decrypting a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A packet of this many bytes was decrypted, from this source address inside the tunnel.
    Packet(usize, IpAddr),
    /// The packet was encrypted, or waits for the handshake; or the datagram contained no packet, only a
    /// protocol message.
    Done,
    /// The packet or datagram was refused: it is invalid, or the outbox is full, or the session or the peer's
    /// address is missing.
    Refused,
}

/// The keys of the interface, for the sessions of all peers.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) private_key: StaticSecret,
    pub(crate) public_key: PublicKey,
    /// A limiter that only verifies the MACs of handshake messages. Its rate is unlimited, because the
    /// interface has already applied the limit.
    pub(crate) unlimited: Arc<RateLimiter>,
}

impl Peer {
    /// Creates a peer without a session, an endpoint or allowed addresses.
    pub(crate) fn new(public_key: Key, now: Instant) -> Self {
        Self {
            public_key,
            preshared_key: None,
            tunn: None,
            has_waiting: false,
            endpoint: None,
            heard_in: 0,
            keepalive: 0,
            keepalive_at: now,
            allowed: Vec::new(),
            handshake_at: Duration::ZERO,
            sent_bytes: 0,
            received_bytes: 0,
        }
    }

    /// Begins a new session with the keys `identity`; `None` ends the session. The peer's datagrams will
    /// contain `slot`. The handshake begins with the next packet of either side. Packets that waited for an
    /// earlier handshake are lost.
    pub(crate) fn begin(&mut self, identity: Option<&Identity>, slot: u32) {
        let new = |it: &Identity| {
            let (private, public) = (it.private_key.clone(), PublicKey::from(self.public_key));
            let limiter = Some(Arc::clone(&it.unlimited));
            Tunn::new(private, public, self.preshared_key, None, slot, limiter)
        };
        self.tunn = identity.map(new);
        self.has_waiting = false;
    }

    /// Returns the peer's public key.
    pub(crate) const fn public_key(&self) -> &Key {
        &self.public_key
    }

    /// Changes the preshared key. Returns `true` if the new key differs from the old one; the caller must then
    /// begin a new session.
    pub(crate) fn set_preshared_key(&mut self, key: Option<Key>) -> bool {
        std::mem::replace(&mut self.preshared_key, key) != key
    }

    pub(crate) const fn set_endpoint(&mut self, endpoint: SocketAddr) {
        self.endpoint = Some(endpoint);
    }

    /// Changes the interval between empty packets, in seconds; 0 sends none. The first is sent when the timers
    /// run next.
    pub(crate) const fn set_keepalive(&mut self, seconds: u16, now: Instant) {
        self.keepalive = seconds;
        self.keepalive_at = now;
    }

    /// Encrypts `packet` into a datagram for the peer and puts the datagram into `outbox`; its outer header
    /// gets the ECN field `ecn`. If the handshake is not complete, starts it; the packet then waits until it is
    /// complete.
    pub(crate) fn encrypt(&mut self, packet: &[u8], ecn: u8, outbox: &mut Outbox) -> Outcome {
        let wanted = (packet.len() + OVERHEAD_BYTES).max(HANDSHAKE_BYTES);
        let (Some(tunn), Some(to)) = (&mut self.tunn, self.endpoint) else {
            return Outcome::Refused;
        };
        let Some(room) = outbox.room(wanted) else { return Outcome::Refused };
        let result = tunn.encapsulate(packet, room);
        let Some(bytes) = written(&result) else {
            self.has_waiting = true;
            return Outcome::Done;
        };
        // The buffer may contain a handshake initiation instead of the packet, which then waits.
        let is_data = room[0] == DATA;
        self.has_waiting |= !is_data;
        self.sent_bytes += bytes as u64;
        outbox.push_with_ecn(bytes, to, if is_data { ecn } else { 0 });
        Outcome::Done
    }

    /// Decrypts `datagram` from `origin` into `packet`. Puts protocol messages that answer the datagram into `outbox`.
    /// If the datagram is valid, its sender becomes the peer's endpoint, unless a valid datagram of a later batch was
    /// decrypted earlier.
    pub(crate) fn decrypt(
        &mut self,
        Origin { from, number }: Origin,
        datagram: &[u8],
        packet: &mut [u8],
        outbox: &mut Outbox,
    ) -> Outcome {
        let Some(tunn) = &mut self.tunn else { return Outcome::Refused };
        // The cipher leaves its tag after the packet.
        if datagram.len() > packet.len() || packet.len() < HANDSHAKE_BYTES {
            return Outcome::Refused;
        }
        let result = tunn.decapsulate(Some(from.ip()), datagram, packet);
        let outcome = match result {
            TunnResult::Err(_) => return Outcome::Refused,
            TunnResult::WriteToTunnelV4(packet, ip) => Outcome::Packet(packet.len(), ip.into()),
            TunnResult::WriteToTunnelV6(packet, ip) => Outcome::Packet(packet.len(), ip.into()),
            TunnResult::Done => Outcome::Done,
            TunnResult::WriteToNetwork(answer) => {
                if let Some(room) = outbox.room(answer.len()) {
                    room.copy_from_slice(answer);
                    outbox.push(answer.len(), from);
                    self.sent_bytes += answer.len() as u64;
                }
                Outcome::Done
            }
        };
        self.received_bytes += datagram.len() as u64;
        // A cookie reply does not authenticate its sender.
        if datagram[0] != COOKIE_REPLY && number >= self.heard_in {
            (self.endpoint, self.heard_in) = (Some(from), number);
        }
        // Only these messages complete a handshake, after which waiting packets can be encrypted.
        if self.has_waiting && [RESPONSE, DATA].contains(&datagram[0]) {
            self.send_waiting(outbox);
        }
        outcome
    }

    /// Runs the protocol timers of this peer. Must be called four times per second.
    pub(crate) fn on_time(&mut self, now: Instant, outbox: &mut Outbox) {
        let Some(room) = outbox.room(HANDSHAKE_BYTES) else { return };
        let Some(tunn) = &mut self.tunn else { return };
        // The timers also run before the peer has an endpoint, because they are the clock of the protocol: with an old
        // clock, a new session would be dropped as expired.
        let mut bytes = written(&tunn.update_timers(room));
        let Some(to) = self.endpoint else { return };
        if bytes.is_none() && self.keepalive > 0 && now >= self.keepalive_at {
            self.keepalive_at = now + Duration::from_secs(self.keepalive.into());
            bytes = written(&match tunn.time_since_last_handshake() {
                Some(_) => tunn.encapsulate(&[], room),
                // An empty packet would wait for the handshake.
                None => tunn.format_handshake_initiation(room, false),
            });
        }
        if let Some(bytes) = bytes {
            self.sent_bytes += bytes as u64;
            outbox.push(bytes, to);
        }
        self.note_handshake();
    }

    /// Returns the settings and counters of the peer.
    pub(crate) fn status(&mut self) -> PeerStatus {
        self.note_handshake();
        PeerStatus {
            public_key: self.public_key,
            preshared_key: self.preshared_key,
            endpoint: self.endpoint,
            handshake_at: self.handshake_at,
            sent_bytes: self.sent_bytes,
            received_bytes: self.received_bytes,
            keepalive: self.keepalive,
            allowed: self.allowed.clone(),
        }
    }

    /// Stores the time of the last handshake, because `boringtun` discards this time with the session.
    fn note_handshake(&mut self) {
        let ago = self.tunn.as_ref().and_then(Tunn::time_since_last_handshake);
        let Some(ago) = ago else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = now.saturating_sub(ago);
        if at.abs_diff(self.handshake_at) > SAME_HANDSHAKE {
            self.handshake_at = at;
        }
    }

    /// Encrypts the packets that waited for the handshake.
    fn send_waiting(&mut self, outbox: &mut Outbox) {
        let (Some(tunn), Some(to)) = (&mut self.tunn, self.endpoint) else { return };
        while let Some(room) = outbox.room(1 << 16) {
            let Some(bytes) = written(&tunn.decapsulate(None, &[], room)) else {
                self.has_waiting = false;
                return;
            };
            self.sent_bytes += bytes as u64;
            outbox.push(bytes, to);
        }
    }
}

/// Returns the length of the datagram that `boringtun` wrote to the buffer, in bytes; `None` if it wrote none.
const fn written(result: &TunnResult<'_>) -> Option<usize> {
    if let TunnResult::WriteToNetwork(datagram) = result { Some(datagram.len()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session of a peer that was silent for minutes since its creation must not seem as old as the peer.
    #[test]
    fn the_protocol_knows_the_time_before_the_peer_has_an_endpoint() {
        let secret = |n: u8| StaticSecret::from([n; 32]);
        let (ours, theirs) = (PublicKey::from(&secret(1)), PublicKey::from(&secret(2)));
        let unlimited = Arc::new(RateLimiter::new(&ours, u64::MAX));
        let identity = Identity { private_key: secret(1), public_key: ours, unlimited };
        let mut peer = Peer::new(theirs.to_bytes(), Instant::now());
        peer.begin(Some(&identity), 0);
        std::thread::sleep(Duration::from_millis(20));
        let before = Instant::now();
        peer.on_time(before, &mut Outbox::new(1 << 10));
        let mut their_tunn = Tunn::new(secret(2), ours, None, None, 1, None);
        let our_tunn = peer.tunn.as_mut().unwrap();
        let (mut there, mut back) = ([0; 256], [0; 256]);
        let initiation =
            written(&their_tunn.format_handshake_initiation(&mut there, false)).unwrap();
        let response =
            written(&our_tunn.decapsulate(None, &there[..initiation], &mut back)).unwrap();
        let keepalive =
            written(&their_tunn.decapsulate(None, &back[..response], &mut there)).unwrap();
        let taken = our_tunn.decapsulate(None, &there[..keepalive], &mut back);
        assert!(matches!(taken, TunnResult::Done), "{taken:?}");
        let age = our_tunn.time_since_last_handshake().unwrap();
        // Exact on a machine of any speed: the session began after `before`.
        assert!(age <= before.elapsed(), "{age:?}");
    }
}
