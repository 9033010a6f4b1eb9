//! After construction the engine allocates nothing, whatever arrives.
//!
//! In a test binary of its own, since an allocator counts for the whole binary.

#[allow(unsafe_code, reason = "counting allocations needs an allocator, and that trait is unsafe")]
mod counting;
#[path = "../harness/settings.rs"]
mod settings;

use counting::allocations;
use rxo_coalesce::rules::{Juggler, RuleEngine};
use rxo_coalesce::{ChecksumForm, Deliveries, Engine, MAX_HEADER_BYTES};
use rxo_frame::{Frame, Gather, Instant};
use rxo_testkit::script::{Script, Setup, Step};
use rxo_testkit::{Random, Workload, workload};

/// Returns `count` random scripts, of every policy in turn.
fn scripts(count: u64) -> Vec<Script> {
    let script = |seed| {
        let mut random = Random::new(seed);
        let bytes: Vec<u8> = (0..2000).map(|_| random.next() as u8).collect();
        let mut script = Script::from_bytes(&bytes);
        let policies = Setup::policies();
        script.setup.policy = policies[seed as usize % policies.len()];
        // Small batches: reaching the limits must not allocate either.
        script.setup.batch_frames = [4, 64, 4096][seed as usize % 3];
        script
    };
    (0..count).map(script).collect()
}

/// Uses a delivery in every way that a sink can without owning memory.
fn look(deliveries: Deliveries<'_, &[u8]>, seen: &mut usize) {
    for delivery in deliveries.iter() {
        let mut bytes = 0;
        delivery.for_each_slice(|slice| bytes += slice.len());
        assert_eq!(bytes, delivery.byte_len());
        if let rxo_coalesce::Delivery::Aggregate(aggregate) = delivery {
            let mut header = [0; MAX_HEADER_BYTES];
            let written = aggregate.write_header(ChecksumForm::Complete, &mut header);
            assert_eq!(written, aggregate.header().len());
            assert_eq!(aggregate.segments().count(), aggregate.segment_count());
        }
    }
    *seen += deliveries.into_frames().count();
}

/// Runs `script` with borrowed frames. Nothing in this function allocates; the batch is large enough before.
fn run<'a>(script: &'a Script, engine: &mut Engine<&'a [u8]>, batch: &mut Vec<Frame<&'a [u8]>>) {
    let (mut now, mut load) = (Instant::ZERO, None);
    let mut seen = 0;
    for step in script.steps.iter().chain(&[Step::Flush]) {
        let sink = |deliveries: Deliveries<'_, &[u8]>| look(deliveries, &mut seen);
        match step {
            Step::Frame(index) => batch.push(script.frame(*index).borrowed()),
            Step::Push => engine.push(batch, now, sink),
            Step::EndOfPoll => engine.end_of_poll(now, sink),
            Step::Load(now_on) => load = *now_on,
            Step::Poll => engine.poll_under(load, batch, now, sink),
            Step::Advance(time) => {
                now = now + *time;
                engine.on_timeout(now, sink);
            }
            Step::Flush => {
                let mut sink = sink;
                engine.push(batch, now, &mut sink);
                engine.flush(now, sink);
            }
        }
    }
    assert_eq!(seen, script.frame_count());
}

#[test]
fn nothing_is_allocated_after_construction() {
    for script in scripts(99) {
        let mut engine = Engine::new(settings::config(&script.setup)).unwrap();
        let mut batch = Vec::with_capacity(script.frame_count());
        let before = allocations();
        run(&script, &mut engine, &mut batch);
        let after = allocations();
        assert_eq!(after - before, 0, "{:?}", script.setup);
    }
}

/// The generic tier allocates nothing after construction either, even with every limit reached.
#[test]
fn rules_allocate_nothing_after_construction() {
    for script in scripts(33) {
        let config = settings::config(&script.setup);
        let mut juggler = Juggler::new();
        juggler.policy.flows = 2;
        let mut engines = (
            RuleEngine::new(juggler, config.clone()).unwrap(),
            RuleEngine::new(config.policy, config).unwrap(),
        );
        let mut batch: Vec<Frame<&[u8]>> = Vec::with_capacity(script.frame_count());
        let (mut now, mut seen) = (Instant::ZERO, 0);
        let before = allocations();
        for step in &script.steps {
            match step {
                Step::Frame(index) => {
                    batch.push(script.frame(*index).borrowed());
                    engines.0.push(&mut batch, now, |all| look(all, &mut seen));
                    batch.push(script.frame(*index).borrowed());
                    engines.1.push(&mut batch, now, |all| look(all, &mut seen));
                }
                Step::Advance(time) => now = now + *time,
                _ => {
                    engines.0.end_of_poll(now, |all| look(all, &mut seen));
                    engines.1.end_of_poll(now, |all| look(all, &mut seen));
                }
            }
        }
        assert_eq!(allocations() - before, 0, "{:?}", script.setup);
    }
}

#[test]
fn nothing_is_allocated_for_ten_thousand_flows() {
    let packets = workload(Workload::W5, 20_000, 1);
    for policy in Setup::policies() {
        let mut setup = Setup::new(policy);
        setup.batch_frames = 256;
        let mut engine = Engine::new(settings::config(&setup)).unwrap();
        let mut batch = Vec::with_capacity(32);
        let mut seen = 0;
        let before = allocations();
        for polled in packets.chunks(32) {
            let frames = polled.iter().map(|packet| Frame::new(packet.as_slice(), Instant::ZERO));
            batch.extend(frames);
            engine.poll(&mut batch, Instant::ZERO, |deliveries| look(deliveries, &mut seen));
        }
        engine.flush(Instant::ZERO, |deliveries| look(deliveries, &mut seen));
        assert_eq!(allocations() - before, 0, "{policy}");
        assert_eq!(seen, packets.len());
    }
}

#[test]
fn the_allocator_counts() {
    let before = allocations();
    drop(std::hint::black_box(vec![1_u8; 100]));
    assert_eq!(allocations() - before, 1);
}
