//! The end of workers: if one panics, the others end in order with complete totals; devices can be handed over before
//! the memory of their workers is freed.

use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rxo::device::middleware::{Direction, PacketLog, TracedSource};
use rxo::driver::DeviceName;
use rxo::frame::Gather;
use rxo::live::{DeviceOptions, Event, Outcome, Station, Workers};
use rxo::worker::Crew;
use rxo::{Instant, Policy, WorkerConfig};
use rxo_testbed::Lab;

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("a_worker_that_panics_ends_the_others_with_their_totals", a_worker_that_panics),
    ("positions_are_known_before_memory_is_freed", positions_before_memory),
];

/// A source that panics at the first frame.
#[derive(Debug)]
struct Panics;

impl PacketLog for Panics {
    fn log<'a, G: Gather<'a>>(&self, _: G, _: Direction, _: Instant) {
        panic!("as the test wants");
    }

    fn take_notice(&self) -> Option<String> {
        None
    }
}

fn a_worker_that_panics() {
    let lab = Lab::through().unwrap();
    let (ready, is_ready) = channel();
    let outcome = thread::scope(|scope| {
        let running = scope.spawn(|| lab.host().run(|| run(&|| ready.send(()).unwrap())).unwrap());
        is_ready.recv().unwrap();
        lab.attach_host("rxo0").unwrap();
        let to = (lab.host_address(), 7000).into();
        // Nobody listens: each is refused at once, until those that come to the second worker stay without an answer.
        while !running.is_finished() {
            lab.peer()
                .run(|| TcpStream::connect_timeout(&to, Duration::from_millis(200)))
                .unwrap()
                .ok();
        }
        running.join().unwrap()
    });
    let said = outcome.result.unwrap_err().to_string();
    assert_eq!(said, "a worker's thread has ended: it has panicked, and printed why");
    let totals = outcome.totals;
    assert_eq!(totals.workers.len(), 2);
    assert_eq!(totals.workers[0].unaccounted, 0, "{totals:?}");
    assert!(totals.all.nic_in.frames >= totals.workers[0].nic_in.frames, "{totals:?}");
}

fn run(ready: &dyn Fn()) -> Outcome {
    let attach = |name: &str| name.parse::<DeviceName>().unwrap().attach_queues(2).unwrap();
    let [nic, host] = [&format!("packet:{}", Lab::WIRE_INTERFACE), "tap:rxo0"].map(attach);
    let options = DeviceOptions { bring_up: true, ..DeviceOptions::default() };
    let (mut nic, host) = (nic.open_queues(options).unwrap(), host.open_queues(options).unwrap());
    let second = nic.pop().unwrap();
    nic.push(rxo::live::Device {
        source: Box::new(TracedSource::new(second.source, Panics)),
        sink: second.sink,
    });
    let workers = Workers::new((nic, host), WorkerConfig::new(Policy::none()), &Crew::new(2));
    ready();
    // Nobody stops it.
    workers.run(&AtomicBool::new(false), |_| {}).unwrap()
}

/// A process that hands its devices over must not wait until the memory of its workers is freed.
fn positions_before_memory() {
    for workers in [1, 2] {
        let lab = Lab::through().unwrap();
        let (ready, is_ready) = channel();
        thread::scope(|scope| {
            let running = || lab.host().run(|| stopped(workers, &|| ready.send(()).unwrap()));
            let running = scope.spawn(running);
            is_ready.recv().unwrap();
            lab.attach_host("rxo0").unwrap();
            let to = (lab.host_address(), 7000);
            let socket = lab.peer().run(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
            while !running.is_finished() {
                // Nobody listens, which a later call reports.
                _ = socket.send_to(b"a datagram", to);
                thread::sleep(Duration::from_millis(1));
            }
            running.join().unwrap().unwrap();
        });
    }
}

/// Runs `count` workers until frames have come, and compares their counts with the positions of the nic's queues while
/// the memory of the workers is there, and once it is freed.
fn stopped(count: u32, ready: &dyn Fn()) {
    let attach = |name: &str| name.parse::<DeviceName>().unwrap().attach_queues(count).unwrap();
    let [nic, host] = [&format!("packet:{}", Lab::WIRE_INTERFACE), "tap:rxo0"].map(attach);
    let options = DeviceOptions { bring_up: true, ..DeviceOptions::default() };
    let mut queues = (nic.open_queues(options).unwrap(), host.open_queues(options).unwrap());
    let report_every = Some(Duration::from_millis(10));
    let config = WorkerConfig { report_every, ..WorkerConfig::new(Policy::none()) };
    let stop = AtomicBool::new(false);
    let observe = |event: Event<'_>| match event {
        Event::Ready => ready(),
        Event::Reading(now) => stop.store(now.all.nic_in.frames > 20, Ordering::Relaxed),
        Event::Notice(line) => panic!("{line}"),
    };
    let ran = match count {
        1 => {
            let (nic, host) = (queues.0.remove(0), queues.1.remove(0));
            Station::new(nic, host, config).run_keeping(&stop, observe)
        }
        _ => Workers::new(queues, config, &Crew::new(count as usize)).run_keeping(&stop, observe),
    };
    let (outcome, remains) = ran.unwrap();
    outcome.result.unwrap();
    // Of each queue the next slot, and the frames that its worker has accounted for.
    let positions = || -> Vec<[u64; 2]> {
        let numbers = nic.position().unwrap().numbers;
        numbers.chunks_exact(4).map(|queue| [queue[0], queue[1]]).collect()
    };
    let before = positions();
    let accounted: u64 = before.iter().map(|[_, accounted]| accounted).sum();
    let frames = outcome.totals.all.nic_in.frames;
    // Frames that came before the first worker began are accounted for as well.
    assert!(frames > 20 && accounted >= frames, "{frames} frames, {before:?}");
    assert_eq!(before.len(), count as usize);
    drop(remains);
    assert_eq!(positions(), before);
}
