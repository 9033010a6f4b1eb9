//! Measures the gain from coalescing in the loops of other VPNs, which `loops` contains with their tests. The
//! result is the time until a TUN has taken all packets, without coalescing divided by with coalescing.
//!
//! `cargo run --release -p rxo --example live_loops [ROUNDS]`. The TUN is in a network namespace of its own, which
//! drops the packets after the route look-up. So the result is the cost until TCP, without the cost of TCP itself. All
//! variants are measured in turn; the figures are medians, with quartiles in brackets.

#[path = "loops/batches.rs"]
mod batches;
#[path = "loops/tasks.rs"]
mod tasks;
#[path = "loops/tun.rs"]
mod tun;

use std::iter::once;
use std::time::Instant;

use rxo::driver::{DeviceSink, SubmitMode, Tap, TapKind};
use rxo::{FrameSink, Gather};
use rxo_testbed::{Namespace, become_root_in_user_namespace};

use crate::tun::{Tun, decrypted};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The number of packets per measurement, large enough that the time for creating an engine is negligible.
const PACKETS: u32 = 8_192;

struct System(DeviceSink);

impl Tun for System {
    fn write<'a>(&mut self, packet: impl Gather<'a>) {
        self.0.transmit(once(packet)).expect("a TUN");
    }
}

fn main() -> Result<()> {
    become_root_in_user_namespace()?;
    let rounds = std::env::args().nth(1).map_or(Ok(51), |text| text.parse())?;
    Namespace::new("loops")?.run(|| measure(rounds))?
}

fn measure(rounds: usize) -> Result<()> {
    let tap = Tap::open("rxo0", TapKind::Tun)?;
    tap.interface().set_up(true)?;
    let mut tun = System(tap.sink(SubmitMode::Writev)?);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut turns: [Vec<[f64; 2]>; 2] = Default::default();
    for _ in 0..rounds {
        let packets = || decrypted(PACKETS).into();
        turns[0].push([
            ns(packets(), |packets| batches::forward(packets, &mut tun)),
            ns(packets(), |packets| batches::forward_coalesced(packets, &mut tun)),
        ]);
        let tunnel = || tasks::tunnel(decrypted(PACKETS));
        turns[1].push([
            ns(tunnel(), |tunnel| runtime.block_on(tasks::forward(tunnel, &mut tun))),
            ns(tunnel(), |tunnel| runtime.block_on(tasks::forward_coalesced(tunnel, &mut tun))),
        ]);
    }
    for (name, turns) in ["batches", "tasks"].into_iter().zip(turns) {
        let [before, after] = [0, 1].map(|at| quartiles(turns.iter().map(|turn| turn[at])));
        let ratio = quartiles(turns.iter().map(|[before, after]| before / after));
        println!("{name}: {before} ns a packet, coalesced {after}: {ratio} times faster");
    }
    let counters = tun.0.counters();
    println!(
        "{} packets in {} writes, {} dropped",
        counters.frames, counters.packets, counters.dropped
    );
    Ok(())
}

/// Returns the time that `run` takes, in nanoseconds per packet.
fn ns<T>(packets: T, run: impl FnOnce(T)) -> f64 {
    let start = Instant::now();
    run(packets);
    start.elapsed().as_nanos() as f64 / f64::from(PACKETS)
}

/// Formats the median of `values`, with the quartiles in brackets.
fn quartiles(values: impl Iterator<Item = f64>) -> String {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let [low, median, high] = [1, 2, 3].map(|n| sorted.get((sorted.len() - 1) * n / 4));
    let [low, median, high] = [low, median, high].map(|value| value.copied().unwrap_or_default());
    format!("{median:.2} ({low:.2} to {high:.2})")
}
