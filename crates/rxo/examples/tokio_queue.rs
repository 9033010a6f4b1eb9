//! Passes owned deliveries through a queue to another task: `cargo run -p rxo --example tokio_queue`.
//!
//! One task receives packets and coalesces them, another waits for the deliveries. Payloads are not copied.

use std::error::Error;

use rxo::coalesce::OwnedDelivery;
use rxo::{Config, Engine, Frame, Gather, Instant, LinkKind, Policy};
use tokio::sync::mpsc::{self, Receiver, Sender};

type Owned = OwnedDelivery<Vec<u8>>;

async fn coalesce(mut packets: Receiver<Vec<u8>>, out: Sender<Owned>) -> Result<(), &'static str> {
    let config =
        Config { link: LinkKind::RawIp, ..Config::new(Policy::linux_gro(), rxo::random_seed()) };
    let mut engine = Engine::new(config).map_err(|_| "a number is out of range")?;
    let (mut received, mut batch, mut queue) = (Vec::new(), Vec::new(), Vec::new());
    while packets.recv_many(&mut received, 256).await != 0 {
        batch.extend(received.drain(..).map(|packet| Frame::new(packet, Instant::ZERO)));
        engine.poll(&mut batch, Instant::ZERO, |all| queue.extend(all.into_owned()));
        for delivery in queue.drain(..) {
            out.send(delivery).await.map_err(|_| "nobody takes deliveries")?;
        }
    }
    Ok(())
}

async fn run() -> Result<(usize, usize), Box<dyn Error>> {
    let (packets, received) = mpsc::channel(256);
    let (out, mut deliveries) = mpsc::channel::<Owned>(16);
    for index in 0..40 {
        packets.send(rxo_testkit::seg().raw_ip().seq(1 + index * 1_000).len(1_000).bytes()).await?;
    }
    drop(packets);
    let engine = tokio::spawn(coalesce(received, out));
    let mut seen = (0, 0);
    while let Some(delivery) = deliveries.recv().await {
        seen = (seen.0 + 1, seen.1 + (&delivery).frame_count());
    }
    engine.await??;
    Ok(seen)
}

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (deliveries, frames) =
        tokio::runtime::Builder::new_current_thread().build()?.block_on(run())?;
    println!("{frames} packets in {deliveries} deliveries");
    assert_eq!((deliveries, frames), (1, 40));
    Ok(())
}
