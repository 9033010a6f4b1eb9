//! A host that probes its addresses before it uses them, on virtual time.

use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rxo_device::{DeviceError, MemoryLink, MemoryOptions, MemorySource};
use rxo_frame::{Frame, Instant};
use rxo_host::link::Probe;
use rxo_host::{Host, HostConfig, Waiter};

use crate::peer::{PEER, arp};

const OURS: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A clock that advances only in waits, by at most 10 ms each.
struct Clock(Instant);

impl Waiter<MemorySource> for Clock {
    fn now(&mut self) -> Instant {
        self.0
    }

    fn pause(&mut self, time: Duration) {
        self.0 = self.0 + time;
    }

    fn wait(
        &mut self,
        _source: Option<&MemorySource>,
        _alarm: BorrowedFd<'_>,
        timeout: Duration,
    ) -> Result<(), DeviceError> {
        self.0 = self.0 + timeout.min(Duration::from_millis(10));
        Ok(())
    }
}

/// Runs a host that probes, after `frame` has arrived. Returns the claim of its address, the time taken, and
/// the number of frames sent.
fn probed(frame: Option<Vec<u8>>, probe: Option<Probe>) -> (Option<String>, Duration, usize) {
    let link = || MemoryLink::new(MemoryOptions::default());
    let (received, sent) = (link(), link());
    let addresses = vec!["10.0.0.2/24".parse().unwrap()];
    let config = HostConfig { mac: Some(OURS), probe, ..HostConfig::new(addresses, [7, 11]) };
    let mut host = Host::new(received.source(), sent.sink(), config).unwrap();
    let begun = Instant::from_micros(1_000_000);
    let mut clock = Clock(begun);
    received.set_now(begun);
    if let Some(frame) = frame {
        received.push(&Frame::new(frame, begun));
    }
    let conflict = host.probe(&mut clock, &AtomicBool::new(false)).unwrap();
    let seen = conflict.map(|conflict| format!("{} {:02x?}", conflict.address, conflict.mac));
    // A round sends the frames that were queued when the probes ended.
    host.turn(clock.0).unwrap();
    (seen, clock.0 - begun, sent.take_all().len())
}

#[test]
fn a_free_address_is_probed_and_announced_in_less_than_half_a_second() {
    let (conflict, time, sent) = probed(None, Some(Probe::default()));
    assert_eq!((conflict, sent), (None, 3), "two probes and an announcement");
    assert!((400..450).contains(&time.as_millis()), "{time:?}");
}

#[test]
fn the_station_that_has_the_address_is_named_at_once() {
    let reply = arp(OURS, 2, (PEER, "10.0.0.2"), (OURS, "0.0.0.0"));
    let (conflict, time, sent) = probed(Some(reply), Some(Probe::default()));
    assert_eq!(conflict.as_deref(), Some("10.0.0.2 [02, 00, 00, 00, 00, 09]"));
    assert!(time.as_millis() < 50 && sent <= 1, "{time:?}, {sent} frames");
}

#[test]
fn without_probes_no_time_passes() {
    assert_eq!(probed(None, None), (None, Duration::ZERO, 1));
}
