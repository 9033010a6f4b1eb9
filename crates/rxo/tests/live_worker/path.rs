//! A laboratory network with a worker in it.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rxo::driver::{SubmitMode, Tap, TapKind};
use rxo::live::{Device, DeviceOptions, Event, Middleware, Outcome, Station};
use rxo::tracer::TracePoint;
use rxo::worker::WorkerConfig;
use rxo_testbed::{Lab, LabOptions};

const TAP: &str = "rxo0";

/// The result of a run, and the number of reports.
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    pub(crate) reports: usize,
}

/// Runs `traffic` through a worker with `config`, and stops it afterwards.
pub(crate) fn through(
    options: LabOptions,
    config: WorkerConfig,
    traffic: impl FnOnce(&Lab),
) -> Ran {
    through_traced(options, config, None, traffic)
}

/// Runs `traffic` through a worker, like [`through`], and records the frames at the nic.
pub(crate) fn through_traced(
    options: LabOptions,
    config: WorkerConfig,
    trace: Option<TracePoint<File>>,
    traffic: impl FnOnce(&Lab),
) -> Ran {
    let lab = Lab::through_with(options).unwrap();
    let tap = lab.host().run(|| Tap::open(TAP, TapKind::Tap).unwrap()).unwrap();
    lab.attach_host(TAP).unwrap();
    let (stop, (ready, is_ready)) = (AtomicBool::new(false), mpsc::channel());
    thread::scope(|scope| {
        let (lab, tap, stop) = (&lab, &tap, &stop);
        let work = move || work(tap, config, trace, ready, stop);
        let worker = scope.spawn(move || lab.host().run(work).unwrap());
        // Stops the worker also when the traffic fails, so that the test ends.
        let stopper = Stopper(stop);
        // Frames sent before the nic is open are lost, and TCP waits a second before it repeats a SYN.
        is_ready.recv().unwrap();
        traffic(lab);
        drop(stopper);
        worker.join().unwrap()
    })
}

fn work(
    tap: &Tap,
    config: WorkerConfig,
    trace: Option<TracePoint<File>>,
    ready: mpsc::Sender<()>,
    stop: &AtomicBool,
) -> Ran {
    let nic = Lab::WIRE_INTERFACE;
    let nic = format!("packet:{nic}").parse().unwrap();
    let options = DeviceOptions { submit: SubmitMode::Auto, ..DeviceOptions::default() };
    let nic = Device::open(&nic, options).unwrap();
    let host = Device::of_tap(tap, options).unwrap();
    ready.send(()).unwrap();
    let config = WorkerConfig { report_every: Some(Duration::from_millis(50)), ..config };
    let mut reports = 0;
    let observe = |event: Event<'_>| match event {
        Event::Ready => {}
        Event::Reading(_) => reports += 1,
        Event::Notice(line) => panic!("{line}"),
    };
    let station = Station::new(nic, host, config);
    let station = match trace {
        None => station,
        Some(log) => station.through(Middleware { logs: vec![log], ..Middleware::default() }),
    };
    Ran { outcome: station.run(stop, observe).unwrap(), reports }
}

/// Sets a flag when dropped.
pub(crate) struct Stopper<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
