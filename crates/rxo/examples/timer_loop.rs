//! A loop with a timer: a policy that holds longer than a poll gives the time at which the engine must be
//! called again.
//!
//! Time is an argument, so this loop runs in virtual time. `cargo run -p rxo --example timer_loop`.

use std::error::Error;

use rxo::coalesce::Hold;
use rxo::frame::Duration;
use rxo::{Config, Engine, Frame, Instant, Policy};

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let policy = Policy { hold: Hold::Within(Duration::from_micros(50)), ..Policy::linux_gro() };
    let mut engine = Engine::new(Config::new(policy, rxo::random_seed()))?;
    let (mut deliveries, mut longest_ns) = (0, 0);
    for n in 0..40_u32 {
        // A packet arrives each 10 µs, and each one is a poll of its own.
        let now = Instant::from_nanos(u64::from(n) * 10_000);
        while let Some(deadline) = engine.poll_at().filter(|deadline| *deadline <= now) {
            engine.on_timeout(deadline, |all| deliveries += all.len());
        }
        let packet = rxo_testkit::seg().seq(1 + n * 1_000).len(1_000).bytes();
        engine.poll(&mut vec![Frame::new(packet, now)], now, |all| deliveries += all.len());
        let wait_ns = engine.poll_at().map_or(0, |deadline| deadline.nanos_since(now));
        longest_ns = longest_ns.max(wait_ns);
    }
    engine.flush(Instant::from_nanos(400_000), |all| deliveries += all.len());
    println!("40 packets in {deliveries} deliveries, held {longest_ns} ns at most");
    assert_eq!((deliveries, longest_ns), (8, 50_000));
    Ok(())
}
