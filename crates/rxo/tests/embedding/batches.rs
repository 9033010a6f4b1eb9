//! A loop as EasyTier has it: packets come from peers through a queue, and go to the TUN. Before, each packet was a
//! write; now a batch goes through the engine.

use std::collections::VecDeque;

use rxo::{Config, Engine, Frame, Gather, Instant, LinkKind, Policy};
use rxo_vnet::VnetHeader;

use crate::tun::{Tun, by_flow, decrypted};

const BATCH: usize = 64;

fn forward(peers: &mut VecDeque<Vec<u8>>, tun: &mut Tun) {
    while let Some(packet) = peers.pop_front() {
        tun.write([0; 10], &[&packet]);
    }
}

fn forward_coalesced(peers: &mut VecDeque<Vec<u8>>, tun: &mut Tun) {
    let config = Config { link: LinkKind::RawIp, ..Config::new(Policy::linux_gro()) };
    let (mut engine, mut batch) =
        (Engine::new(config).expect("numbers in range"), Vec::with_capacity(BATCH));
    while !peers.is_empty() {
        let received = peers.drain(..BATCH.min(peers.len()));
        batch.extend(received.map(|packet| Frame::new(packet, Instant::ZERO)));
        engine.poll(&mut batch, Instant::ZERO, |deliveries| {
            for delivery in deliveries.iter() {
                let mut pieces = Vec::new();
                delivery.for_each_slice(|piece| pieces.push(piece));
                tun.write(VnetHeader::for_packet(delivery.offload(), 0).to_bytes(), &pieces);
            }
        });
    }
}

#[test]
fn batches_of_64_take_one_write_for_32_packets() {
    let (mut before, mut after) = (Tun::default(), Tun::default());
    forward(&mut decrypted().into(), &mut before);
    forward_coalesced(&mut decrypted().into(), &mut after);
    assert_eq!((before.writes, after.writes), (256, 8));
    assert!(by_flow(after.packets) == by_flow(before.packets), "bit for bit");
}
