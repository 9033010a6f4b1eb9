//! The state of the protocol with one peer. Both directions share it.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use boringtun::noise::{Tunn, TunnResult};
use boringtun::x25519::{PublicKey, StaticSecret};
use rxo::driver::udp::Outbox;

use crate::options::{Network, Options, key_in};

/// What a datagram has beside its packet, in bytes.
const OVERHEAD_BYTES: usize = 32;

/// The longest message of a handshake, in bytes.
const HANDSHAKE_BYTES: usize = 148;

/// The answer to a message that proves nothing yet, not even where its sender is.
const COOKIE_BYTES: usize = 64;

/// The peer, shared by both directions.
pub(crate) struct Peer {
    session: Mutex<Session>,
    allowed: Vec<Network>,
}

/// The protocol with the peer, and where the peer is.
pub(crate) struct Session {
    tunn: Tunn,
    /// Where it last sent something valid from.
    endpoint: Option<SocketAddr>,
}

/// What became of a packet or a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A packet of so many bytes was decrypted, from this address in the tunnel.
    Packet(usize, IpAddr),
    /// It was encrypted, or it waits for the handshake, or it was a message of the protocol itself.
    Done,
    /// It is invalid, or there was no room or no address for what follows from it.
    Refused,
}

impl Peer {
    /// Reads the keys.
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let private = StaticSecret::from(key_in(&options.private_key)?);
        let preshared = options.preshared_key.as_ref().map(key_in).transpose()?;
        let public = PublicKey::from(options.peer);
        let tunn = Tunn::new(private, public, preshared, options.keepalive, 0, None);
        let session = Mutex::new(Session { tunn, endpoint: options.endpoint });
        Ok(Self { session, allowed: options.allowed_ips.clone() })
    }

    /// Whether `ip` is behind the peer.
    pub(crate) fn allows(&self, ip: IpAddr) -> bool {
        self.allowed.iter().any(|network| network.all.contains(ip))
    }

    /// The state, for the time of a batch.
    pub(crate) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Encrypts `packet` into `outbox`, as a datagram to the peer. Before the handshake it waits, and the handshake
    /// begins.
    pub(crate) fn encrypt(&mut self, packet: &[u8], outbox: &mut Outbox) -> Outcome {
        let wanted = (packet.len() + OVERHEAD_BYTES).max(HANDSHAKE_BYTES);
        let Some(room) = outbox.room(wanted) else { return Outcome::Refused };
        let result = self.tunn.encapsulate(packet, room);
        let bytes = written(&result);
        self.send(bytes, outbox)
    }

    /// Decrypts `datagram`, which came from `from`, into `packet`. Answers of the protocol go into `outbox`.
    pub(crate) fn decrypt(
        &mut self,
        from: SocketAddr,
        datagram: &[u8],
        packet: &mut [u8],
        outbox: &mut Outbox,
    ) -> Outcome {
        // The cipher leaves its tag behind the packet.
        if datagram.len() > packet.len() || packet.len() < HANDSHAKE_BYTES {
            return Outcome::Refused;
        }
        let result = self.tunn.decapsulate(Some(from.ip()), datagram, packet);
        let outcome = match result {
            TunnResult::Err(_) => return Outcome::Refused,
            TunnResult::WriteToTunnelV4(packet, ip) => Outcome::Packet(packet.len(), ip.into()),
            TunnResult::WriteToTunnelV6(packet, ip) => Outcome::Packet(packet.len(), ip.into()),
            TunnResult::Done => Outcome::Done,
            TunnResult::WriteToNetwork(answer) => {
                let Some(room) = outbox.room(answer.len()) else { return Outcome::Refused };
                room.copy_from_slice(answer);
                outbox.push(answer.len(), from);
                if answer.len() != COOKIE_BYTES {
                    self.endpoint = Some(from);
                    self.send_waiting(outbox);
                }
                return Outcome::Done;
            }
        };
        self.endpoint = Some(from);
        outcome
    }

    /// Does what is due by the clock. Call it four times a second.
    pub(crate) fn on_time(&mut self, outbox: &mut Outbox) {
        let Some(room) = outbox.room(HANDSHAKE_BYTES) else { return };
        let bytes = written(&self.tunn.update_timers(room));
        self.send(bytes, outbox);
    }

    /// Encrypts the packets that waited for the handshake.
    fn send_waiting(&mut self, outbox: &mut Outbox) {
        while let Some(room) = outbox.room(1 << 16) {
            let Some(bytes) = written(&self.tunn.decapsulate(None, &[], room)) else { return };
            self.send(Some(bytes), outbox);
        }
    }

    /// Sends the datagram that is in the outbox's room, if the protocol has made one.
    fn send(&self, bytes: Option<usize>, outbox: &mut Outbox) -> Outcome {
        if let (Some(bytes), Some(to)) = (bytes, self.endpoint) {
            outbox.push(bytes, to);
        }
        if bytes.is_some() && self.endpoint.is_none() { Outcome::Refused } else { Outcome::Done }
    }
}

/// The length of the datagram that is to be sent.
const fn written(result: &TunnResult<'_>) -> Option<usize> {
    if let TunnResult::WriteToNetwork(datagram) = result { Some(datagram.len()) } else { None }
}
