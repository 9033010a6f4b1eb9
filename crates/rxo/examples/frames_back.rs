//! Takes the original frames back after the delivery was used: `cargo run -p rxo --example frames_back`.

use std::error::Error;

use rxo::coalesce::OwnedDelivery;
use rxo::frame::Pool;
use rxo::{Config, Engine, Frame, Gather, Instant, Policy};

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::new(32, 2_048);
    let mut engine = Engine::new(Config::new(Policy::linux_gro(), rxo::random_seed()))?;
    let (mut batch, mut sent) = (Vec::new(), Vec::new());
    for n in 0..32 {
        let bytes = rxo_testkit::seg().seq(1 + n * 1_000).len(1_000).bytes();
        let mut buffer = pool.take().ok_or("a buffer")?;
        buffer.set_len(bytes.len());
        buffer.copy_from_slice(&bytes);
        batch.push(Frame::new(buffer, Instant::ZERO));
        sent.push(bytes);
    }
    let mut queue: Vec<OwnedDelivery<_>> = Vec::new();
    engine.poll(&mut batch, Instant::ZERO, |all| queue.extend(all.into_owned()));
    assert!(pool.is_exhausted(), "the queue owns all buffers");
    println!("{} packets in {} deliveries", (&queue[0]).frame_count(), queue.len());
    let frames: Vec<_> = queue.drain(..).flat_map(OwnedDelivery::into_frames).collect();
    assert!(frames.iter().map(|frame| frame.bytes()).eq(sent.iter().map(Vec::as_slice)));
    drop(frames);
    assert_eq!(pool.available(), 32, "each buffer is back in its pool");
    Ok(())
}
