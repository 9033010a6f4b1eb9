//! Handshakes under load, and settings, without a TUN. Datagrams go over the loopback interface.

use std::mem;
use std::net::UdpSocket;
use std::sync::mpsc;
use std::thread::Scope;
use std::time::Duration;

use boringtun::x25519::{PublicKey, StaticSecret};
use rxo::driver::udp::UdpOptions;

use super::*;
use crate::network::Network;

const OURS: Key = [1; 32];
const PEER: Key = [2; 32];

/// The interface with one peer, and the peer's end of the protocol.
pub(crate) struct Pair {
    pub(crate) shared: Shared,
    outbox: Outbox,
    pub(crate) peer: Tunn,
}

fn public(private: Key) -> PublicKey {
    PublicKey::from(&StaticSecret::from(private))
}

/// Returns the other end of the protocol, with this private key.
fn tunn(key: Key) -> Tunn {
    Tunn::new(StaticSecret::from(key), public(OURS), None, None, 1, None)
}

fn interface() -> Shared {
    Shared::new(Outside::open(0, UdpOptions::default()).unwrap())
}

fn peer(key: Key) -> PeerSettings {
    PeerSettings { public_key: public(key).to_bytes(), ..PeerSettings::default() }
}

fn origin(socket: &UdpSocket) -> Origin {
    Origin { from: socket.local_addr().unwrap(), number: 0 }
}

fn set(interface: &Shared, settings: Settings) {
    assert_eq!(interface.apply(&settings), Ok(()));
}

/// Binds the peer's socket, at an address of the loopback interface.
pub(crate) fn bind(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

/// Returns `true` if `work` ends, and `false` if it waits for something.
pub(crate) fn ends<'s>(scope: &'s Scope<'s, '_>, work: impl FnOnce() + Send + 's) -> bool {
    let (sender, receiver) = mpsc::channel();
    scope.spawn(move || {
        work();
        _ = sender.send(());
    });
    receiver.recv_timeout(Duration::from_secs(60)).is_ok()
}

impl Pair {
    fn new() -> Self {
        let shared = interface();
        set(&shared, Settings { private_key: Some(OURS), ..Settings::default() });
        let mut pair = Self { shared, outbox: Outbox::new(1 << 12), peer: tunn(PEER) };
        pair.peer = pair.add(PEER, "10.0.0.0/24");
        pair
    }

    /// Adds a peer with this private key and the addresses `allowed`. Returns its end of the protocol.
    fn add(&mut self, key: Key, allowed: &str) -> Tunn {
        let allowed = vec![(Change::Add, allowed.parse::<Network>().unwrap().all)];
        let peers = vec![PeerSettings { allowed, ..peer(key) }];
        set(&self.shared, Settings { peers, ..Settings::default() });
        tunn(key)
    }

    /// Makes an interface with a session of the peer behind 10.0.0.0/24, which is at `socket`.
    pub(crate) fn with_session(socket: &UdpSocket) -> Self {
        let mut pair = Self::new();
        pair.begin_session(socket);
        pair
    }

    /// Adds a peer behind 10.0.1.0/24 with a session, which is at `socket`. Returns its end of the protocol.
    pub(crate) fn add_second(&mut self, socket: &UdpSocket) -> Tunn {
        let second = self.add([3; 32], "10.0.1.0/24");
        let first = mem::replace(&mut self.peer, second);
        self.begin_session(socket);
        mem::replace(&mut self.peer, first)
    }

    fn begin_session(&mut self, socket: &UdpSocket) {
        let initiation = self.initiation();
        let response = self.answer(&initiation, socket);
        let mut bytes = [0; 148];
        let TunnResult::WriteToNetwork(keepalive) =
            self.peer.decapsulate(None, &response, &mut bytes)
        else {
            panic!("no keepalive");
        };
        let outcome = self.decrypt(keepalive, socket);
        assert_eq!(outcome, Outcome::Done);
    }

    fn decrypt(&mut self, datagram: &[u8], socket: &UdpSocket) -> Outcome {
        let interface = self.shared.read();
        interface.decrypt(origin(socket), datagram, &mut [0; 2_048], &mut self.outbox)
    }

    fn initiation(&mut self) -> Vec<u8> {
        let mut bytes = [0; 148];
        match self.peer.format_handshake_initiation(&mut bytes, true) {
            TunnResult::WriteToNetwork(message) => message.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    /// Passes `datagram` to the interface as one from `socket`. Returns the answer.
    fn answer(&mut self, datagram: &[u8], socket: &UdpSocket) -> Vec<u8> {
        self.decrypt(datagram, socket);
        assert!(!self.outbox.is_empty(), "no answer");
        assert!(self.shared.read().outside.socket().sink().send(&mut self.outbox));
        let mut bytes = [0; 2_048];
        let count = socket.recv(&mut bytes).unwrap();
        bytes[..count].to_vec()
    }
}

#[test]
fn under_load_only_a_sender_that_returns_its_cookie_is_answered() {
    let mut pair = Pair::new();
    let (home, elsewhere) = (bind("127.0.0.1"), bind("127.0.0.2"));
    for _ in 0..HANDSHAKES_A_SECOND {
        let initiation = pair.initiation();
        assert_eq!(pair.answer(&initiation, &home)[0], RESPONSE);
    }
    let initiation = pair.initiation();
    let cookie = pair.answer(&initiation, &home);
    assert_eq!((cookie[0], cookie.len()), (COOKIE_REPLY, COOKIE_BYTES));
    let mut packet = [0; 2_048];
    let taken = pair.peer.decapsulate(None, &cookie, &mut packet);
    assert!(matches!(taken, TunnResult::Done), "{taken:?}");
    let proven = pair.initiation();
    // The cookie is for the address to which it was sent.
    assert_eq!(pair.answer(&proven, &elsewhere)[0], COOKIE_REPLY);
    assert_eq!(pair.answer(&proven, &home)[0], RESPONSE);
}

#[test]
fn who_is_no_peer_or_forges_gets_no_answer() {
    let mut pair = Pair::new();
    let mut stranger = Tunn::new(StaticSecret::from([9; 32]), public(OURS), None, None, 1, None);
    let mut bytes = [0; 148];
    let TunnResult::WriteToNetwork(strange) =
        stranger.format_handshake_initiation(&mut bytes, true)
    else {
        panic!("no initiation");
    };
    let mut forged = pair.initiation();
    forged[120] ^= 1;
    let data = [&[DATA, 0, 0, 0][..], &[0; 44]].concat();
    let from = bind("127.0.0.1");
    for datagram in [&*strange, &forged, &data, &[], &[DATA], &[INITIATION; 148], &[RESPONSE; 92]] {
        let outcome = pair.decrypt(datagram, &from);
        assert_eq!((outcome, pair.outbox.is_empty()), (Outcome::Refused, true), "{datagram:?}");
    }
    assert_eq!(pair.shared.read().status().peers[0].endpoint, None);
}

#[test]
fn the_last_valid_message_says_where_the_peer_is() {
    let mut pair = Pair::new();
    for address in ["127.0.0.1", "127.0.0.2"] {
        let (socket, initiation) = (bind(address), pair.initiation());
        pair.answer(&initiation, &socket);
        let status = pair.shared.read().status().peers.remove(0);
        assert_eq!(status.endpoint, Some(socket.local_addr().unwrap()));
        assert!(status.received_bytes >= 148 && status.sent_bytes >= 92);
    }
}

#[test]
fn a_private_key_makes_its_owner_no_peer() {
    let interface = interface();
    let both = Settings { peers: vec![peer(OURS), peer(PEER)], ..Settings::default() };
    set(&interface, both.clone());
    assert_eq!(interface.read().status().peers.len(), 2);
    set(&interface, Settings { private_key: Some(OURS), ..Settings::default() });
    set(&interface, both);
    let status = interface.read().status();
    assert_eq!((status.private_key, status.peers.len()), (Some(OURS), 1));
    assert_eq!(status.peers[0].public_key, public(PEER).to_bytes());
    set(&interface, Settings { private_key: Some([0; 32]), ..Settings::default() });
    assert_eq!(interface.read().status().private_key, None);
}

#[test]
fn an_update_of_an_unknown_peer_adds_none() {
    let interface = interface();
    let update = PeerSettings { only_updates: true, ..peer(PEER) };
    set(&interface, Settings { peers: vec![update], ..Settings::default() });
    assert_eq!(interface.read().status().peers, []);
}
