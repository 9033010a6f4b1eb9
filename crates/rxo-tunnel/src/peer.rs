//! The protocol state of the one peer, shared by both directions.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use boringtun::noise::{Tunn, TunnResult};
use boringtun::x25519::{PublicKey, StaticSecret};
use rxo::driver::udp::Outbox;

use crate::options::{Network, Options, key_in};

/// Overhead of a datagram beyond its packet, in bytes.
const OVERHEAD_BYTES: usize = 32;

/// Length of the longest handshake message, in bytes.
const HANDSHAKE_BYTES: usize = 148;

/// Length of a cookie reply, in bytes: the answer to a message whose sender has not yet proved its address.
const COOKIE_BYTES: usize = 64;

/// The peer, shared by both directions.
pub(crate) struct Peer {
    session: Mutex<Session>,
    allowed: Vec<Network>,
}

/// The protocol state of the session with the peer, and the peer's address.
pub(crate) struct Session {
    tunn: Tunn,
    /// The address of the last valid message from the peer.
    endpoint: Option<SocketAddr>,
}

/// The outcome of encrypting a packet or decrypting a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A packet of this many bytes was decrypted, from this source address inside the tunnel.
    Packet(usize, IpAddr),
    /// The packet was encrypted or waits for the handshake, or the datagram was a protocol message.
    Done,
    /// The input is invalid, or there was no space or no address for the resulting datagram.
    Refused,
}

impl Peer {
    /// Creates the peer with the keys in `options`, some of which are read from files.
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let private = StaticSecret::from(key_in(&options.private_key)?);
        let preshared = options.preshared_key.as_ref().map(key_in).transpose()?;
        let public = PublicKey::from(options.peer);
        let tunn = Tunn::new(private, public, preshared, options.keepalive, 0, None);
        let session = Mutex::new(Session { tunn, endpoint: options.endpoint });
        Ok(Self { session, allowed: options.allowed_ips.clone() })
    }

    /// Returns `true` if `ip` is one of the addresses behind the peer.
    pub(crate) fn allows(&self, ip: IpAddr) -> bool {
        self.allowed.iter().any(|network| network.all.contains(ip))
    }

    /// Locks the session, for the duration of a batch.
    pub(crate) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Encrypts `packet` as a datagram to the peer and puts it into `outbox`. Before the handshake is
    /// complete, the packet waits and the handshake is started.
    pub(crate) fn encrypt(&mut self, packet: &[u8], outbox: &mut Outbox) -> Outcome {
        let wanted = (packet.len() + OVERHEAD_BYTES).max(HANDSHAKE_BYTES);
        let Some(room) = outbox.room(wanted) else { return Outcome::Refused };
        let result = self.tunn.encapsulate(packet, room);
        let bytes = written(&result);
        self.send(bytes, outbox)
    }

    /// Decrypts `datagram`, received from `from`, into `packet`. Puts answers of the protocol into `outbox`.
    pub(crate) fn decrypt(
        &mut self,
        from: SocketAddr,
        datagram: &[u8],
        packet: &mut [u8],
        outbox: &mut Outbox,
    ) -> Outcome {
        // The cipher leaves its tag after the packet.
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

    /// Runs the timers of the protocol. Call it four times a second.
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

    /// Queues the datagram in the free space of `outbox`, if the protocol has written one.
    fn send(&self, bytes: Option<usize>, outbox: &mut Outbox) -> Outcome {
        if let (Some(bytes), Some(to)) = (bytes, self.endpoint) {
            outbox.push(bytes, to);
        }
        if bytes.is_some() && self.endpoint.is_none() { Outcome::Refused } else { Outcome::Done }
    }
}

/// Returns the length of the datagram that the protocol wrote; `None` if it wrote none.
const fn written(result: &TunnResult<'_>) -> Option<usize> {
    if let TunnResult::WriteToNetwork(datagram) = result { Some(datagram.len()) } else { None }
}
