//! A host behind an unreliable network: the wire ends at a worker that loses, duplicates and reorders frames
//! in both directions, and its TAP is the host's interface.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rxo::Policy;
use rxo::device::middleware::{Impairment, ImpairmentSettings};
use rxo::driver::{Tap, TapKind};
use rxo::frame::LinkKind;
use rxo::host::{Handle, HostConfig};
use rxo::live::host::{self, RunningHost};
use rxo::live::{Device, DeviceOptions, Middleware, Station};
use rxo::worker::WorkerConfig;
use rxo_testbed::{Lab, LabOptions};

use crate::network::{SHORT_TIME_WAIT, becomes_empty};

/// The network, the worker in it, and the host behind the worker.
pub(crate) struct BadNetwork {
    pub(crate) lab: Lab,
    running: RunningHost,
    stop: Arc<AtomicBool>,
    worker: JoinHandle<()>,
}

const TAP: &str = "rxo0";

impl BadNetwork {
    pub(crate) fn new(
        options: LabOptions,
        settings: ImpairmentSettings,
        change: impl FnOnce(&mut HostConfig),
    ) -> Self {
        let lab = Lab::through_with(options).unwrap();
        let tap = lab.host().run(|| Tap::open(TAP, TapKind::Tap).unwrap()).unwrap();
        if lab.host().has_ipv6() {
            lab.host().set_sysctl(&format!("net.ipv6.conf.{TAP}.disable_ipv6"), "1").unwrap();
        }
        let interface = lab.host().interface(TAP);
        interface.set_mtu(options.mtu).unwrap();
        interface.set_arp(false).unwrap();
        interface.up().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let worker_stop = Arc::clone(&stop);
        let work = move || between(&tap, settings, &worker_stop);
        let start = || std::thread::spawn(work);
        let worker = lab.host().run(start).unwrap();
        let running = start_host(&lab, change);
        Self { lab, running, stop, worker }
    }

    pub(crate) fn handle(&self) -> Handle {
        self.running.handle()
    }

    /// Waits until all connections have ended by themselves, then stops everything.
    pub(crate) fn ends_empty(self) {
        becomes_empty(&self.running);
        let outcome = self.running.stop();
        self.stop.store(true, Ordering::Relaxed);
        self.worker.join().unwrap();
        outcome.result.unwrap();
    }
}

fn start_host(lab: &Lab, change: impl FnOnce(&mut HostConfig)) -> RunningHost {
    let (v4, v6) = Lab::HOST_ADDRESSES;
    let addresses = [format!("{v4}/24"), format!("{v6}/64")].map(|cidr| cidr.parse().unwrap());
    let mut config = host::config(addresses.into());
    // The Ethernet address of the interface belongs to the system's side of the TAP.
    config.mac = Some([2, 0, 0, 0, 0, 0x77]);
    config.tcp.time_wait = SHORT_TIME_WAIT;
    change(&mut config);
    let name = format!("packet:{TAP}").parse().unwrap();
    let start = || {
        let open = move || Device::open(&name, DeviceOptions::default());
        host::start_with("test".to_owned(), open, config).unwrap()
    };
    lab.host().run(start).unwrap()
}

fn between(tap: &Tap, settings: ImpairmentSettings, stop: &AtomicBool) {
    let wire = format!("packet:{}", Lab::WIRE_INTERFACE).parse().unwrap();
    let nic = Device::open(&wire, DeviceOptions::default()).unwrap();
    let host = Device::of_tap(tap, DeviceOptions::default()).unwrap();
    let impair = |seed| {
        let settings = ImpairmentSettings { seed, ..settings };
        Some(Impairment::new(settings, LinkKind::Ethernet).unwrap())
    };
    let middleware: Middleware =
        Middleware { impair_nic: impair(1), impair_host: impair(2), ..Middleware::default() };
    let config = WorkerConfig::new(Policy::none());
    let station = Station::new(nic, host, config).through(middleware);
    station.run(stop, |_| {}).unwrap().result.unwrap();
}
