//! One peer of the interface: its session, endpoint and counters.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use boringtun::noise::rate_limiter::RateLimiter;
use boringtun::noise::{Tunn, TunnResult};
use boringtun::x25519::{PublicKey, StaticSecret};
use rxo::driver::udp::Outbox;

use crate::keys::Key;
use crate::uapi::PeerStatus;

/// The number of bytes that the tunnel adds to a packet in its datagram, without IP and UDP headers.
const OVERHEAD_BYTES: usize = 32;

/// Length of the longest handshake message, in bytes.
pub(crate) const HANDSHAKE_BYTES: usize = 148;

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
    /// Settings and figures.
    pub(crate) status: PeerStatus,
    /// The state of the protocol; `None` while the interface has no private key.
    tunn: Option<Tunn>,
    /// `true` if packets wait for the handshake to complete.
    has_waiting: bool,
    /// The number of the last batch with a valid message.
    heard_in: u64,
    keepalive_at: Instant,
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

/// The keys of the interface, for the sessions of all peers, and what follows from them.
pub(crate) struct Identity {
    pub(crate) private_key: StaticSecret,
    pub(crate) public_key: PublicKey,
    /// Limits handshake messages, of all peers together.
    pub(crate) limiter: RateLimiter,
    /// Checks the sum of handshake messages for one peer, and limits nothing: the interface has done that before.
    unlimited: Arc<RateLimiter>,
}

impl Identity {
    /// Makes the identity with this private key. Beyond this number of handshake messages a second, senders must prove
    /// that they receive at their address.
    pub(crate) fn new(private_key: Key, handshakes_a_second: u64) -> Self {
        let private_key = StaticSecret::from(private_key);
        let public_key = PublicKey::from(&private_key);
        let limiter = |most| RateLimiter::new(&public_key, most);
        let (limiter, unlimited) = (limiter(handshakes_a_second), Arc::new(limiter(u64::MAX)));
        Self { private_key, public_key, limiter, unlimited }
    }
}

impl Peer {
    /// Creates a peer without a session, an endpoint or allowed addresses.
    pub(crate) fn new(public_key: Key, now: Instant) -> Self {
        let status = PeerStatus { public_key, ..PeerStatus::default() };
        Self { status, tunn: None, has_waiting: false, heard_in: 0, keepalive_at: now }
    }

    /// Begins a new session with the keys `identity`; `None` ends the session. The peer's datagrams will
    /// contain `slot`. The handshake begins with the next packet of either side. Packets that waited for an
    /// earlier handshake are lost.
    pub(crate) fn begin(&mut self, identity: Option<&Identity>, slot: u32) {
        let PeerStatus { public_key, preshared_key, .. } = self.status;
        let new = |it: &Identity| {
            let (private, public) = (it.private_key.clone(), PublicKey::from(public_key));
            let limiter = Some(Arc::clone(&it.unlimited));
            Tunn::new(private, public, preshared_key, None, slot, limiter)
        };
        self.tunn = identity.map(new);
        self.has_waiting = false;
    }

    /// Changes the preshared key. Returns `true` if it is another one, so that a new session must begin.
    pub(crate) fn set_preshared_key(&mut self, key: Option<Key>) -> bool {
        std::mem::replace(&mut self.status.preshared_key, key) != key
    }

    /// Changes the interval between empty packets, in seconds; 0 sends none. The first is sent when the timers
    /// run next.
    pub(crate) const fn set_keepalive(&mut self, seconds: u16, now: Instant) {
        (self.status.keepalive, self.keepalive_at) = (seconds, now);
    }

    /// Encrypts `packet` into a datagram for the peer and puts the datagram into `outbox`; its outer header
    /// gets the ECN field `ecn`. If the handshake is not complete, starts it; the packet then waits until it is
    /// complete.
    pub(crate) fn encrypt(&mut self, packet: &[u8], ecn: u8, outbox: &mut Outbox) -> Outcome {
        let wanted = (packet.len() + OVERHEAD_BYTES).max(HANDSHAKE_BYTES);
        let (Some(tunn), Some(to), Some(room)) =
            (&mut self.tunn, self.status.endpoint, outbox.room(wanted))
        else {
            return Outcome::Refused;
        };
        let Some(bytes) = written(&tunn.encapsulate(packet, room)) else {
            self.has_waiting = true;
            return Outcome::Done;
        };
        // The buffer may contain a handshake initiation instead of the packet, which then waits.
        let is_data = room[0] == DATA;
        self.has_waiting |= !is_data;
        self.status.sent_bytes += bytes as u64;
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
        let outcome = match tunn.decapsulate(Some(from.ip()), datagram, packet) {
            TunnResult::Err(_) => return Outcome::Refused,
            TunnResult::WriteToTunnelV4(packet, ip) => Outcome::Packet(packet.len(), ip.into()),
            TunnResult::WriteToTunnelV6(packet, ip) => Outcome::Packet(packet.len(), ip.into()),
            TunnResult::Done => Outcome::Done,
            TunnResult::WriteToNetwork(answer) => {
                if let Some(room) = outbox.room(answer.len()) {
                    room.copy_from_slice(answer);
                    outbox.push(answer.len(), from);
                    self.status.sent_bytes += answer.len() as u64;
                }
                Outcome::Done
            }
        };
        self.status.received_bytes += datagram.len() as u64;
        // A cookie reply does not prove who sent it.
        if datagram[0] != COOKIE_REPLY && number >= self.heard_in {
            (self.status.endpoint, self.heard_in) = (Some(from), number);
        }
        // Only these messages complete a handshake, after which waiting packets can be encrypted.
        if self.has_waiting && [RESPONSE, DATA].contains(&datagram[0]) {
            self.send_waiting(outbox);
        }
        outcome
    }

    /// Runs the protocol timers of this peer. Must be called four times per second.
    pub(crate) fn on_time(&mut self, now: Instant, outbox: &mut Outbox) {
        let (Some(tunn), Some(room)) = (&mut self.tunn, outbox.room(HANDSHAKE_BYTES)) else {
            return;
        };
        // Also before the peer has an endpoint: this is the clock of the protocol, and a session that begins at a time long
        // past is dropped as too old.
        let mut bytes = written(&tunn.update_timers(room));
        let Some(to) = self.status.endpoint else { return };
        if bytes.is_none() && self.status.keepalive > 0 && now >= self.keepalive_at {
            self.keepalive_at = now + Duration::from_secs(self.status.keepalive.into());
            bytes = written(&match tunn.time_since_last_handshake() {
                Some(_) => tunn.encapsulate(&[], room),
                // An empty packet would wait for the handshake.
                None => tunn.format_handshake_initiation(room, false),
            });
        }
        if let Some(bytes) = bytes {
            self.status.sent_bytes += bytes as u64;
            outbox.push(bytes, to);
        }
        self.note_handshake();
    }

    /// Keeps the time of the last handshake, because the protocol forgets it with the session.
    pub(crate) fn note_handshake(&mut self) {
        let ago = self.tunn.as_ref().and_then(Tunn::time_since_last_handshake);
        let Some(ago) = ago else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = now.saturating_sub(ago);
        if at.abs_diff(self.status.handshake_at) > SAME_HANDSHAKE {
            self.status.handshake_at = at;
        }
    }

    /// Encrypts the packets that waited for the handshake.
    fn send_waiting(&mut self, outbox: &mut Outbox) {
        let Some((tunn, to)) = self.tunn.as_mut().zip(self.status.endpoint) else { return };
        while let Some(room) = outbox.room(1 << 16) {
            let Some(bytes) = written(&tunn.decapsulate(None, &[], room)) else {
                self.has_waiting = false;
                return;
            };
            self.status.sent_bytes += bytes as u64;
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
        let identity = Identity::new([1; 32], 100);
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
