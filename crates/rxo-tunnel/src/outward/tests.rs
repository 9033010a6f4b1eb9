//! Threads that encrypt: what each peer receives is in the order in which it came from the TUN.

use std::collections::VecDeque;
use std::io::{PipeReader, PipeWriter, Write as _, pipe};
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;

use boringtun::noise::{Tunn, TunnResult};
use rxo::device::{SourceCapabilities, SourceCounters};
use rxo::frame::{ChecksumStatus, Gso, GsoKind};
use rxo::{DeviceError, Instant};

use super::*;
use crate::interface::tests::{Pair, bind, ends};
use crate::peer::Origin;
use crate::uapi::Settings;

const ROUNDS: usize = 30;
/// So few that the receive buffer of a socket has room for them.
const PACKETS: u32 = 100;

/// A TUN with frames that were made before. It is always readable.
struct Made {
    frames: VecDeque<Frame<Vec<u8>>>,
    readable: (PipeReader, PipeWriter),
}

/// Returns the direction from an empty TUN to the peers of `pair`.
fn outward(pair: &Pair) -> Outward<Made> {
    let mut readable = pipe().unwrap();
    readable.1.write_all(b"!").unwrap();
    let tun = Made { frames: VecDeque::new(), readable };
    Outward::new(tun, pair.shared.read().outside.socket())
}

fn frame(number: u32) -> Frame<Vec<u8>> {
    Frame::new(packet(number), Instant::ZERO)
}

impl Descriptors for Made {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.readable.0.as_fd());
    }
}

impl FrameSource for Made {
    type Buffer = Vec<u8>;

    fn capabilities(&self) -> SourceCapabilities {
        SourceCapabilities { link: LinkKind::RawIp, mtu: 1_420, gives_gso: false }
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<Vec<u8>>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let count = budget.min(self.frames.len());
        batch.extend(self.frames.drain(..count));
        Ok(count)
    }

    fn counters(&mut self) -> SourceCounters {
        SourceCounters::default()
    }
}

/// Returns an IPv4 packet with a number, to one of the peers, or to nobody. Its length differs from those of its neighbours.
fn packet(number: u32) -> Vec<u8> {
    let mut bytes = vec![0; 28 + number as usize % 90];
    (bytes[0], bytes[3]) = (0x45, bytes.len() as u8);
    bytes[16..20].copy_from_slice(&[10, 0, behind(number), 1]);
    bytes[20..24].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Returns the network to which packet `number` goes; nobody has the network 2.
fn behind(number: u32) -> u8 {
    [0, 0, 1, 0, 1, 1, 2, 0, 0, 0, 0, 1][number as usize % 12]
}

/// Returns the packets that have arrived at `socket`, decrypted.
fn received(socket: &UdpSocket, peer: &mut Tunn) -> Vec<Vec<u8>> {
    socket.set_nonblocking(true).unwrap();
    let (mut datagram, mut packet) = ([0; 2_048], [0; 2_048]);
    let datagrams = std::iter::from_fn(|| {
        let count = socket.recv(&mut datagram).ok()?;
        match peer.decapsulate(None, &datagram[..count], &mut packet) {
            TunnResult::WriteToTunnelV4(packet, _) => Some(packet.to_vec()),
            other => panic!("{other:?}"),
        }
    });
    datagrams.collect()
}

#[test]
fn each_peer_gets_its_packets_in_order_from_four_threads() {
    let sockets = ["127.0.0.1", "127.0.0.2"].map(bind);
    let mut pair = Pair::with_session(&sockets[0]);
    let mut second = pair.add_second(&sockets[1]);
    let outward = outward(&pair);
    let (shared, stop) = (&pair.shared, AtomicBool::new(false));
    let work = || {
        let mut own = Encryptor::new();
        while !lock(&outward.entry).tun.frames.is_empty() {
            outward.turn(&mut own, shared, Some(&stop)).unwrap();
        }
        // Frames that were read by others.
        while outward.turn(&mut own, shared, Some(&stop)).unwrap() {}
    };
    let all = |network| (0..PACKETS).filter(move |n| behind(*n) == network).map(packet);
    for _ in 0..ROUNDS {
        lock(&outward.entry).tun.frames = (0..PACKETS).map(frame).collect();
        thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(work)));
        assert!(received(&sockets[0], &mut pair.peer).into_iter().eq(all(0)));
        assert!(received(&sockets[1], &mut second).into_iter().eq(all(1)));
    }
    let (each, lost) = (u64::from(PACKETS), all(2).count() as u64);
    assert_eq!(lock(&outward.figures).0, [each, each - lost, lost].map(|n| n * ROUNDS as u64));
}

/// Both threads have encrypted a batch for one peer and wait for the exit, as they do while the socket is full.
#[test]
fn while_the_socket_is_full_settings_change_figures_are_printed_and_datagrams_are_decrypted() {
    let socket = bind("127.0.0.1");
    let mut pair = Pair::with_session(&socket);
    let mut datagram = [0; 256];
    let TunnResult::WriteToNetwork(datagram) =
        pair.peer.encapsulate(&packet_from_peer(), &mut datagram)
    else {
        panic!("no session");
    };
    let (outward, stop) = (outward(&pair), AtomicBool::new(false));
    let numbers: Vec<u32> = (0..).filter(|n| behind(*n) == 0).take(2 * BUDGET).collect();
    lock(&outward.entry).tun.frames = numbers.iter().copied().map(frame).collect();
    let exit = outward.exit.lock();
    thread::scope(|scope| {
        let work = || outward.turn(&mut Encryptor::new(), &pair.shared, Some(&stop)).unwrap();
        (0..2).for_each(|_| _ = scope.spawn(work));
        while !lock(&outward.entry).tun.frames.is_empty() {
            thread::yield_now();
        }
        let port = pair.shared.read().outside.port();
        let moves = Settings { listen_port: Some(0), ..Settings::default() };
        assert_eq!(pair.shared.apply(&moves), Ok(()));
        assert_ne!(pair.shared.read().status().listen_port, port);
        let origin = Origin { from: socket.local_addr().unwrap(), number: 1 };
        let (mut packet, mut answers) = ([0; 256], Outbox::new(1 << 10));
        let outcome = pair.shared.read().decrypt(origin, datagram, &mut packet, &mut answers);
        assert_eq!(outcome, Outcome::Packet(28, [10, 0, 0, 1].into()));
        let have_ended = ends(scope, || assert!(outward.to_string().starts_with("out: 0 frames")));
        drop(exit);
        assert!(have_ended, "the figures wait for the socket");
    });
    let expected = numbers.into_iter().map(packet);
    assert!(received(&socket, &mut pair.peer).into_iter().eq(expected));
}

/// Returns an IPv4 packet from an address of the first peer.
fn packet_from_peer() -> [u8; 28] {
    let mut bytes = [0; 28];
    (bytes[0], bytes[3]) = (0x45, 28);
    bytes[12..16].copy_from_slice(&[10, 0, 0, 1]);
    bytes
}

/// A whole batch of GSO frames. Each segment carries 8 bytes, the least that Linux's TCP sends.
#[test]
fn tiny_segments_have_room_in_the_outbox() {
    const HEADER_BYTES: usize = 20 + 60;
    let socket = bind("127.0.0.1");
    let (pair, mut own) = (Pair::with_session(&socket), Encryptor::new());
    let mut bytes = vec![0; 65_535];
    (bytes[0], bytes[9], bytes[20 + 12]) = (0x45, 6, 0xf0);
    bytes[2..4].copy_from_slice(&[0xff, 0xff]);
    bytes[16..20].copy_from_slice(&[10, 0, 0, 1]);
    let gso = Gso::new(GsoKind::TcpV4, 8.try_into().unwrap());
    let frame = Frame {
        checksum: ChecksumStatus::Partial { start: 20, offset: 16 },
        gso: Some(gso),
        ..Frame::new(bytes, Instant::ZERO)
    };
    own.batch.extend(std::iter::repeat_n(frame, BUDGET));
    let interface = pair.shared.read();
    let segments = (65_535 - HEADER_BYTES).div_ceil(8) * BUDGET;
    let totals = own.encrypt(interface.peers.get(0));
    assert_eq!(totals, [BUDGET as u64, segments as u64, 0]);
}
