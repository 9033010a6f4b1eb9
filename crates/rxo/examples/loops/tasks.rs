//! A forwarding loop as in rayfish: one task awaits datagrams, another writes to the TUN. In the original,
//! single packets passed between the two tasks; here owned deliveries do.

use rxo::coalesce::OwnedDelivery;
use rxo::{Config, Engine, Frame, Instant, LinkKind, Policy};
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::tun::Tun;

type Owned = OwnedDelivery<Vec<u8>>;

const QUEUE: usize = 8;

pub(crate) async fn forward(tunnel: Receiver<Vec<u8>>, tun: &mut impl Tun) {
    let (to_tun, mut packets) = mpsc::channel(QUEUE);
    tokio::spawn(receive(tunnel, to_tun));
    while let Some(packet) = packets.recv().await {
        tun.write(Frame::new(&packet[..], Instant::ZERO));
    }
}

pub(crate) async fn forward_coalesced(tunnel: Receiver<Vec<u8>>, tun: &mut impl Tun) {
    let (to_tun, mut deliveries) = mpsc::channel(QUEUE);
    tokio::spawn(receive_coalesced(tunnel, to_tun));
    while let Some(delivery) = deliveries.recv().await {
        tun.write(&delivery);
    }
}

async fn receive(mut tunnel: Receiver<Vec<u8>>, to_tun: Sender<Vec<u8>>) {
    while let Some(packet) = tunnel.recv().await {
        to_tun.send(packet).await.expect("a writer");
    }
}

async fn receive_coalesced(mut tunnel: Receiver<Vec<u8>>, to_tun: Sender<Owned>) {
    let config =
        Config { link: LinkKind::RawIp, ..Config::new(Policy::linux_gro(), rxo::random_seed()) };
    let mut engine = Engine::new(config).expect("numbers in range");
    let (mut received, mut queue) = (Vec::new(), Vec::new());
    while tunnel.recv_many(&mut received, 64).await != 0 {
        let mut batch =
            received.drain(..).map(|packet| Frame::new(packet, Instant::ZERO)).collect();
        engine.poll(&mut batch, Instant::ZERO, |all| queue.extend(all.into_owned()));
        for delivery in queue.drain(..) {
            to_tun.send(delivery).await.expect("a writer");
        }
    }
}

/// Creates the receiving end of a tunnel in which `packets` have arrived.
pub(crate) fn tunnel(packets: Vec<Vec<u8>>) -> Receiver<Vec<u8>> {
    let (datagrams, tunnel) = mpsc::channel(packets.len());
    packets.into_iter().for_each(|packet| datagrams.try_send(packet).expect("room for all"));
    tunnel
}

#[test]
fn tasks_write_one_packet_for_32() {
    use crate::tun::{Counted, by_flow, decrypted};

    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (mut before, mut after) = (Counted::default(), Counted::default());
    runtime.block_on(forward(tunnel(decrypted(256)), &mut before));
    runtime.block_on(forward_coalesced(tunnel(decrypted(256)), &mut after));
    assert_eq!((before.writes, after.writes), (256, 8));
    assert!(by_flow(after.packets) == by_flow(before.packets), "bit for bit");
}
