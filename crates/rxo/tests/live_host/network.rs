//! A network with a host on one end of a wire, and Linux on the other.

use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use rxo::driver::DeviceName;
use rxo::host::{Handle, HostConfig};
use rxo::live::DeviceOptions;
use rxo::live::host::{self, Outcome, RunningHost};
use rxo_testbed::{Lab, LabOptions};

/// The network, and the host in it.
pub(crate) struct Network {
    pub(crate) lab: Lab,
    running: RunningHost,
}

impl Network {
    /// Creates a host on `packet:wire0`, whose wire ends at the peer.
    pub(crate) fn new(options: LabOptions, change: impl FnOnce(&mut HostConfig)) -> Self {
        let lab = Lab::through_with(options).unwrap();
        let (v4, v6) = Lab::HOST_ADDRESSES;
        let mut config = host::config(
            [format!("{v4}/24"), format!("{v6}/64")].map(|cidr| cidr.parse().unwrap()).into(),
        );
        config.tcp.time_wait = SHORT_TIME_WAIT;
        change(&mut config);
        let name: DeviceName = format!("packet:{}", Lab::WIRE_INTERFACE).parse().unwrap();
        let start = || host::start(&name, DeviceOptions::default(), config).unwrap();
        let running = lab.host().run(start).unwrap();
        Self { lab, running }
    }

    pub(crate) fn handle(&self) -> Handle {
        self.running.handle()
    }

    /// Returns an address of the peer with `port`.
    pub(crate) fn peer(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.lab.peer_address(), port)
    }

    /// Returns an address of the host with `port`.
    pub(crate) fn host(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.lab.host_address(), port)
    }

    /// Returns the IPv6 addresses of the peer and of the host.
    pub(crate) fn v6() -> (IpAddr, IpAddr) {
        (Lab::PEER_ADDRESSES.1.into(), Lab::HOST_ADDRESSES.1.into())
    }

    /// Waits until all connections have ended by themselves, then stops the host.
    pub(crate) fn ends_empty(self) {
        becomes_empty(&self.running);
        self.stop();
    }

    /// Stops the host; its device must not have failed.
    pub(crate) fn stop(self) -> Outcome {
        let outcome = self.running.stop();
        outcome.result.as_ref().unwrap();
        outcome
    }
}

/// Asserts that all resources of ended connections are freed while the host still runs.
pub(crate) fn becomes_empty(running: &RunningHost) {
    let begun = Instant::now();
    loop {
        let counters = running.counters().unwrap();
        if (counters.connections, counters.timers) == (0, 0) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{} are left", counters.connections);
        thread::sleep(Duration::from_millis(20));
    }
}

/// A TIME-WAIT short enough that a test can wait for its end.
pub(crate) const SHORT_TIME_WAIT: Duration = Duration::from_millis(200);
