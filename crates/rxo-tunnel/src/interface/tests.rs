//! Handshakes under load, and settings, without a TUN. Datagrams go over the loopback interface.

use std::net::UdpSocket;
use std::time::Duration;

use rxo::driver::udp::UdpOptions;

use super::*;

const OURS: Key = [1; 32];
const PEER: Key = [2; 32];

/// The interface with one peer, and the peer's end of the protocol.
struct Pair {
    shared: Shared,
    outbox: Outbox,
    peer: Tunn,
}

fn public(private: Key) -> PublicKey {
    PublicKey::from(&StaticSecret::from(private))
}

fn interface() -> Shared {
    Shared::new(Outside::open(0, UdpOptions::default()).unwrap())
}

fn peer(key: Key) -> PeerSettings {
    PeerSettings { public_key: public(key).to_bytes(), ..PeerSettings::default() }
}

fn set(interface: &Shared, settings: Settings) {
    assert_eq!(interface.apply(&settings), Ok(()));
}

/// Binds the peer's socket, at an address of the loopback interface.
fn bind(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

impl Pair {
    fn new() -> Self {
        let shared = interface();
        let settings =
            Settings { private_key: Some(OURS), peers: vec![peer(PEER)], ..Settings::default() };
        set(&shared, settings);
        let peer = Tunn::new(StaticSecret::from(PEER), public(OURS), None, None, 1, None);
        Self { shared, outbox: Outbox::new(1 << 12), peer }
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
        let from = socket.local_addr().unwrap();
        self.shared.lock().decrypt(from, datagram, &mut [0; 2_048], &mut self.outbox);
        assert!(!self.outbox.is_empty(), "no answer");
        assert!(self.shared.lock().outside.socket().sink().send(&mut self.outbox));
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
    let from = bind("127.0.0.1").local_addr().unwrap();
    for datagram in [&*strange, &forged, &data, &[], &[DATA], &[INITIATION; 148], &[RESPONSE; 92]] {
        let outcome = pair.shared.lock().decrypt(from, datagram, &mut [0; 2_048], &mut pair.outbox);
        assert_eq!((outcome, pair.outbox.is_empty()), (Outcome::Refused, true), "{datagram:?}");
    }
    assert_eq!(pair.shared.lock().status().peers[0].endpoint, None);
}

#[test]
fn the_last_valid_message_says_where_the_peer_is() {
    let mut pair = Pair::new();
    for address in ["127.0.0.1", "127.0.0.2"] {
        let (socket, initiation) = (bind(address), pair.initiation());
        pair.answer(&initiation, &socket);
        let status = pair.shared.lock().status().peers.remove(0);
        assert_eq!(status.endpoint, Some(socket.local_addr().unwrap()));
        assert!(status.received_bytes >= 148 && status.sent_bytes >= 92);
    }
}

#[test]
fn a_private_key_makes_its_owner_no_peer() {
    let interface = interface();
    let both = Settings { peers: vec![peer(OURS), peer(PEER)], ..Settings::default() };
    set(&interface, both.clone());
    assert_eq!(interface.lock().status().peers.len(), 2);
    set(&interface, Settings { private_key: Some(OURS), ..Settings::default() });
    set(&interface, both);
    let status = interface.lock().status();
    assert_eq!((status.private_key, status.peers.len()), (Some(OURS), 1));
    assert_eq!(status.peers[0].public_key, public(PEER).to_bytes());
    set(&interface, Settings { private_key: Some([0; 32]), ..Settings::default() });
    assert_eq!(interface.lock().status().private_key, None);
}

#[test]
fn an_update_of_an_unknown_peer_adds_none() {
    let interface = interface();
    let update = PeerSettings { only_updates: true, ..peer(PEER) };
    set(&interface, Settings { peers: vec![update], ..Settings::default() });
    assert_eq!(interface.lock().status().peers, []);
}
