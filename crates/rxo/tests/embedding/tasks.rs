//! A loop as rayfish has it: a task awaits datagrams, another writes to the TUN. Owned deliveries go between them.

use rxo::coalesce::OwnedDelivery;
use rxo::{Config, Engine, Frame, Gather, Instant, LinkKind, Policy};
use rxo_vnet::VnetHeader;
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::tun::{Tun, by_flow, decrypted};

type Owned = OwnedDelivery<Vec<u8>>;

async fn receive(mut tunnel: Receiver<Vec<u8>>, to_tun: Sender<Owned>) {
    let config = Config { link: LinkKind::RawIp, ..Config::new(Policy::linux_gro()) };
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

async fn write(mut deliveries: Receiver<Owned>) -> Tun {
    let mut tun = Tun::default();
    while let Some(delivery) = deliveries.recv().await {
        let mut pieces = Vec::new();
        (&delivery).for_each_slice(|piece| pieces.push(piece));
        tun.write(VnetHeader::for_packet((&delivery).offload(), 0).to_bytes(), &pieces);
    }
    tun
}

#[test]
fn tasks_write_one_packet_for_32() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let tun = runtime.block_on(async {
        let ((datagrams, tunnel), (to_tun, deliveries)) = (mpsc::channel(256), mpsc::channel(8));
        for packet in decrypted() {
            datagrams.send(packet).await.unwrap();
        }
        drop(datagrams);
        tokio::spawn(receive(tunnel, to_tun));
        write(deliveries).await
    });
    assert_eq!(tun.writes, 8);
    assert!(by_flow(tun.packets) == by_flow(decrypted()), "bit for bit");
}
