//! Tests of coalescing that switches itself off and on: no frame is lost or reordered, and reports contain
//! the state.

use std::time::Duration;

use rxo::worker::Coalesce;
use rxo::{Duplex, Instant, MemoryOptions, Policy, WorkerConfig};
use rxo_testkit::seg;

use crate::world::{Ended, SlowSink, World};

const BYTES: usize = 64;
const SECOND: Duration = Duration::from_secs(1);

/// Runs a worker that first receives single frames, which cannot be coalesced, and then polls of two
/// segments.
fn run(coalesce: Coalesce, (alone, polls): (u32, u32)) -> Ended {
    let most_packets = 1_000_000;
    let world = World::with(MemoryOptions { most_packets, ..MemoryOptions::default() });
    let segment = |number: u32, at| seg().seq(1 + number * BYTES as u32).len(BYTES).frame_at(at);
    world.arrive(Instant::ZERO, APART, alone, segment);
    for poll in 0..polls {
        let (at, first) = (Instant::ZERO + APART * (alone + poll), alone + poll * TOGETHER);
        world.arrive(at, Duration::ZERO, TOGETHER, |n, at| segment(first + n, at));
    }
    let every = Some(SECOND);
    let policy = Policy::linux_gro();
    let config = WorkerConfig::new(policy);
    let config = WorkerConfig { coalesce, report_every: every, look_every: every, ..config };
    // The sink takes time, because for an idle worker coalescing has no benefit.
    let sink = SlowSink { time_per_packet: Duration::from_micros(10), ..SlowSink::new(&world) };
    let source = world.host().source;
    world.run_into(Duplex { source, sink }, config)
}

const APART: Duration = Duration::from_micros(300);
const TOGETHER: u32 = 2;
/// Counts of single frames and of polls for 13 s and 14 s.
const LONG: (u32, u32) = (43_333, 46_667);
const SHORT: (u32, u32) = (3_000, 1_000);

const fn frames((alone, polls): (u32, u32)) -> u32 {
    alone + polls * TOGETHER
}

/// Asserts that every byte arrived once and in order. Returns the number of deliveries.
fn deliveries(ended: &Ended, of: (u32, u32)) -> u32 {
    let mut next = 1;
    for sent in &ended.to_host {
        let seq = u32::from_be_bytes(*sent.bytes[38..].first_chunk().unwrap());
        assert_eq!(seq, next);
        next += (sent.bytes.len() - 54) as u32;
    }
    assert_eq!(next, 1 + frames(of) * BYTES as u32);
    ended.to_host.len() as u32
}

#[test]
fn what_does_not_pay_is_switched_off_and_on_again_when_it_pays() {
    let ended = run(Coalesce::Auto, LONG);
    deliveries(&ended, LONG);
    let states: Vec<_> = ended.reports.iter().map(|report| report.coalescing).collect();
    let off_at = states.iter().position(|state| !state.is_on).unwrap();
    assert!((10..13).contains(&off_at), "{off_at} s");
    // The first pause of coalescing ends during the transfer.
    let probe_at = states.iter().position(|state| state.is_probe).unwrap();
    assert!(probe_at >= off_at + 10 && states[probe_at].is_on, "{probe_at} s");
    let last = ended.totals.coalescing;
    assert!(last.is_on && !last.is_probe, "{last:?}");
    assert_eq!((last.switched_off, last.switched_on, last.probes), (1, 1, 1));
    // Some frames passed by the engine while coalescing was off, and the engine counted the others.
    assert!(last.passed > 30_000, "{last:?}");
    assert_eq!(last.passed + ended.totals.engine.frames, u64::from(frames(LONG)));
    let flushes = ended.totals.engine.flushed(rxo::coalesce::FlushReason::PolicyChange);
    assert!(flushes <= 2, "{flushes}");
    assert!(ended.totals.engine.frames_per_delivery() > 1.0);
}

#[test]
fn by_default_it_stays_on_and_off_means_never() {
    let on = run(Coalesce::On, SHORT);
    assert_eq!((on.totals.coalescing.passed, on.totals.coalescing.is_on), (0, true));
    assert_eq!(deliveries(&on, SHORT), SHORT.0 + SHORT.1);
    let off = run(Coalesce::Off, SHORT);
    assert_eq!(deliveries(&off, SHORT), frames(SHORT));
    assert_eq!((off.totals.engine.frames, off.totals.coalescing.is_on), (0, false));
    assert_eq!(off.totals.coalescing.passed, u64::from(frames(SHORT)));
}
