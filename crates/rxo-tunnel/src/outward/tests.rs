//! Threads that encrypt: what each peer receives is in the order in which it came from the TUN.

use std::collections::VecDeque;
use std::io::{PipeReader, PipeWriter, Write as _, pipe};
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;

use boringtun::noise::{Tunn, TunnResult};
use rxo::device::{SourceCapabilities, SourceCounters};
use rxo::{DeviceError, Instant};

use super::*;
use crate::interface::tests::{Pair, bind};

const ROUNDS: usize = 30;
/// So few that the receive buffer of a socket has room for them.
const PACKETS: u32 = 100;

/// A TUN with frames that were made before. It is always readable.
struct Made {
    frames: VecDeque<Vec<u8>>,
    readable: (PipeReader, PipeWriter),
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
        batch.extend(self.frames.drain(..count).map(|bytes| Frame::new(bytes, Instant::ZERO)));
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
    let mut readable = pipe().unwrap();
    readable.1.write_all(b"!").unwrap();
    let tun = Made { frames: VecDeque::new(), readable };
    let outward = Outward::new(tun, pair.shared.read().outside.socket());
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
        lock(&outward.entry).tun.frames = (0..PACKETS).map(packet).collect();
        thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(work)));
        assert!(received(&sockets[0], &mut pair.peer).into_iter().eq(all(0)));
        assert!(received(&sockets[1], &mut second).into_iter().eq(all(1)));
    }
    let (each, lost) = (u64::from(PACKETS), all(2).count() as u64);
    assert_eq!(lock(&outward.exit).totals, [each, each - lost, lost].map(|n| n * ROUNDS as u64));
}
