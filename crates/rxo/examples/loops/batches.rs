//! A forwarding loop as in EasyTier: packets from peers pass through a queue to the TUN. The original loop
//! wrote each packet by itself; here a batch goes through the engine.

use std::collections::VecDeque;

use rxo::{Config, Engine, Frame, Instant, LinkKind, Policy};

use crate::tun::Tun;

const BATCH: usize = 64;

pub(crate) fn forward(mut peers: VecDeque<Vec<u8>>, tun: &mut impl Tun) {
    while let Some(packet) = peers.pop_front() {
        tun.write(Frame::new(&packet[..], Instant::ZERO));
    }
}

pub(crate) fn forward_coalesced(mut peers: VecDeque<Vec<u8>>, tun: &mut impl Tun) {
    let config =
        Config { link: LinkKind::RawIp, ..Config::new(Policy::linux_gro(), rxo::random_seed()) };
    let (mut engine, mut batch) =
        (Engine::new(config).expect("numbers in range"), Vec::with_capacity(BATCH));
    while !peers.is_empty() {
        let received = peers.drain(..BATCH.min(peers.len()));
        batch.extend(received.map(|packet| Frame::new(packet, Instant::ZERO)));
        engine.poll(&mut batch, Instant::ZERO, |deliveries| {
            deliveries.iter().for_each(|delivery| tun.write(delivery));
        });
    }
}

#[test]
fn batches_of_64_take_one_write_for_32_packets() {
    use crate::tun::{Counted, by_flow, decrypted};

    let (mut before, mut after) = (Counted::default(), Counted::default());
    forward(decrypted(256).into(), &mut before);
    forward_coalesced(decrypted(256).into(), &mut after);
    assert_eq!((before.writes, after.writes), (256, 8));
    assert!(by_flow(after.packets) == by_flow(before.packets), "bit for bit");
}
