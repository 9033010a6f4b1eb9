//! A flood of SYNs from hosts that do not exist.

use rxo_device::MemoryOptions;
use rxo_frame::{Duration, Frame};
use rxo_wire::TcpFlags;

use crate::listening::spoofed;
use crate::world::{World, drain, fill, options, pattern};

/// The data that an established connection carried during a flood.
struct Carried {
    bytes: usize,
    syns: usize,
    most_connections: usize,
}

/// Runs one round per 100 µs, with `syns_in_each` SYNs in each, and measures an established connection.
fn carry(ticks: usize, syns_in_each: usize) -> Carried {
    let options = MemoryOptions { most_packets: 8_192, ..options() };
    let mut world = World::with(options, |config| config.budget_frames = 512);
    let listener = world.listen(64);
    let (stream, accepted) = world.connected(&listener);
    let data = pattern(100_000);
    let mut carried = Carried { bytes: 0, syns: 0, most_connections: 0 };
    for _ in 0..ticks {
        for _ in 0..syns_in_each {
            let n = carried.syns as u32;
            let (host, port) = (77 + n / 60_000 % 100, 1_024 + (n % 60_000) as u16);
            let syn = spoofed(host, port, TcpFlags::SYN, n, 0);
            world.there.push(&Frame::new(syn, world.now));
            carried.syns += 1;
        }
        fill(&stream, &data);
        world.client.turn(world.now).unwrap();
        world.server.turn(world.now).unwrap();
        carried.bytes += drain(&accepted).unwrap().0.len();
        world.now = world.now + Duration::from_micros(100);
        carried.most_connections =
            carried.most_connections.max(world.server.counters().connections);
    }
    carried
}

#[test]
fn a_flood_of_syns_takes_neither_memory_nor_the_rate_of_others() {
    // With the checks of a debug build a SYN takes longer; the variable can force the full million there too.
    let usual = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    let syns: usize = std::env::var("RXO_FLOOD_SYNS").map_or(usual, |text| text.parse().unwrap());
    let in_each = 128;
    let ticks = syns.div_ceil(in_each);
    let quiet = carry(ticks, 0);
    let flooded = carry(ticks, in_each);
    assert!(flooded.syns >= syns);
    // The established connection, and as many half-open ones as the listener allows.
    assert!(flooded.most_connections <= 65, "{} connections", flooded.most_connections);
    let (with, without) = (flooded.bytes, quiet.bytes);
    assert!(without > 50_000_000 && with * 10 >= without * 9, "{with} bytes instead of {without}");
}
