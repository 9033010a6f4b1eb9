//! A worker that panics: the others end in order, and their totals are complete.

use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rxo::device::middleware::{Direction, PacketLog, TracedSource};
use rxo::driver::DeviceName;
use rxo::frame::Gather;
use rxo::live::{DeviceOptions, Outcome, Workers};
use rxo::worker::Crew;
use rxo::{Instant, Policy, WorkerConfig};
use rxo_testbed::Lab;

use crate::Test;

pub(crate) const TESTS: &[Test] =
    &[("a_worker_that_panics_ends_the_others_with_their_totals", a_worker_that_panics)];

/// Panics at the first frame.
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
