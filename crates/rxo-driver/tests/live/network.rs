//! Two networks joined by a veth, and functions that receive frames in tests.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::time::Duration;

use rxo_device::FrameSource;
use rxo_driver::{clock, wait};
use rxo_frame::Frame;
use rxo_testbed::{Namespace, create_veth};

/// The time that a test waits at most for frames that must arrive.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The time without an arrival after which a test concludes that nothing will arrive.
pub(crate) const QUIET: Duration = Duration::from_millis(50);

pub(crate) const NEAR: &str = "near0";
pub(crate) const FAR: &str = "far0";
pub(crate) const NEAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
pub(crate) const FAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);

/// Two networks joined by a veth, `near0` in one and `far0` in the other, both up and silent.
pub(crate) struct Pair {
    pub(crate) near: Namespace,
    pub(crate) far: Namespace,
}

impl Pair {
    /// Creates a pair without addresses: the only frames on it are those that the test sends.
    pub(crate) fn silent() -> Self {
        let (near, far) = (quiet_namespace("near"), quiet_namespace("far"));
        create_veth(&near.interface(NEAR), &far.interface(FAR)).unwrap();
        near.interface(NEAR).up().unwrap();
        far.interface(FAR).up().unwrap();
        near.interface(NEAR).await_wire().unwrap();
        Self { near, far }
    }

    /// Creates a pair with an address at each end.
    pub(crate) fn addressed() -> Self {
        let pair = Self::silent();
        pair.near.interface(NEAR).add_address(IpAddr::V4(NEAR_ADDRESS), 24).unwrap();
        pair.far.interface(FAR).add_address(IpAddr::V4(FAR_ADDRESS), 24).unwrap();
        pair
    }
}

/// Creates a namespace whose interfaces send no frames of their own accord.
pub(crate) fn quiet_namespace(label: &str) -> Namespace {
    let namespace = Namespace::new(label).unwrap();
    if namespace.has_ipv6() {
        namespace.set_sysctl("net.ipv6.conf.default.disable_ipv6", "1").unwrap();
    }
    namespace
}

/// Receives until `enough` returns true; panics when that takes too long.
pub(crate) fn receive_until<S: FrameSource + AsFd>(
    source: &mut S,
    mut enough: impl FnMut(&[Frame<S::Buffer>]) -> bool,
) -> Vec<Frame<S::Buffer>> {
    let mut frames = Vec::new();
    let ends_at = clock::now() + LONG;
    while !enough(&frames) {
        let left = ends_at.since(clock::now());
        assert!(!left.is_zero(), "waited too long; there are {} frames", frames.len());
        if source.receive(&mut frames, 64).unwrap() == 0 {
            wait::wait_readable(&[source.as_fd()], Some(left)).unwrap();
        }
    }
    frames
}

/// Waits until the interface has dropped `count` frames in all because the ring was full. Frames that were
/// just sent may be delivered only once their processor core runs that work.
pub(crate) fn await_drops(source: &mut impl FrameSource, count: u64) {
    let ends_at = clock::now() + LONG;
    while source.counters().ring_drops < count && clock::now() < ends_at {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(source.counters().ring_drops, count);
}

/// Keeps the calling thread on one core. A frame sent over a veth waits in a queue of the core that sent it;
/// if the sender is moved to another core, its later frames can overtake the earlier ones.
pub(crate) fn stay_on_one_core() {
    rxo_testbed::pin_to_core(0).unwrap();
}

/// Receives exactly `count` frames.
pub(crate) fn receive<S: FrameSource + AsFd>(
    source: &mut S,
    count: usize,
) -> Vec<Frame<S::Buffer>> {
    let frames = receive_until(source, |frames| frames.len() >= count);
    assert_eq!(frames.len(), count);
    frames
}

/// Asserts that nothing arrives.
pub(crate) fn assert_quiet<S: FrameSource + AsFd>(source: &mut S) {
    let mut frames = Vec::new();
    wait::wait_readable(&[source.as_fd()], Some(QUIET)).unwrap();
    assert_eq!(source.receive(&mut frames, 64).unwrap(), 0);
}
