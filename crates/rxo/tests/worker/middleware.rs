//! Tests that a source that holds frames back is read again when they are due, although nothing arrives.

use std::time::Duration;

use rxo::device::middleware::{ImpairedSource, Impairment, ImpairmentSettings};
use rxo::{Duplex, Instant, LinkKind, Policy, Worker, WorkerConfig};

use crate::pausing::bulk;
use crate::world::{TURN, World};

const DELAY: Duration = Duration::from_millis(20);

#[test]
fn a_delayed_frame_reaches_the_host_on_time() {
    let world = World::new();
    world.arrive(Instant::ZERO, Duration::from_millis(90), 3, bulk);
    let impairment = Impairment::new(
        ImpairmentSettings { delay: DELAY, ..ImpairmentSettings::default() },
        LinkKind::Ethernet,
    );
    let Duplex { source, sink } = world.nic();
    let clock = world.clone();
    let source = ImpairedSource::new(source, impairment.unwrap(), move || clock.time_now());
    let config = WorkerConfig::new(Policy::linux_gro());
    let mut worker = Worker::new(Duplex { source, sink }, world.host(), config).unwrap();
    world.at(Instant::from_micros(300_000), crate::world::Event::Stop);
    worker.run(&mut world.clone(), world.stopping(), |_| {}).unwrap();
    let arrivals: Vec<_> = world.to_host.take_all().iter().map(|sent| sent.sent_at).collect();
    assert_eq!(arrivals.len(), 3);
    for (index, at) in arrivals.into_iter().enumerate() {
        let due_at = Instant::ZERO + Duration::from_millis(90) * index as u32 + DELAY;
        assert!(at >= due_at && at.since(due_at) <= 2 * TURN, "frame {index} at {at:?}");
    }
    let counters = worker.reading().nic_in.impaired;
    assert_eq!((counters.taken, counters.given), (3, 3));
}
