//! The kernel under test: a private network with a TAP that coalesces, and two TAPs on a bridge.
//!
//! ```text
//!  write -> [gro0, NAPI] -> monitor          write -> [in0] -> bridge -> [out0, no offloads] -> read
//! ```

use std::io;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use rxo_testbed::{CoalescingHold, Monitor, Namespace, Offload, Tap};
use rxo_vnet::VNET_HEADER_BYTES;

use crate::whole::Whole;

/// The private network, and a buffer for reading.
pub(crate) struct Kernel {
    coalescing: Tap,
    hold: CoalescingHold,
    monitor: Monitor,
    entry: Tap,
    exit: Tap,
    buffer: Vec<u8>,
    /// The number of times that a burst was not one poll and was sent again.
    pub(crate) repeated: u64,
    _namespace: Namespace,
}

impl Kernel {
    pub(crate) fn new() -> Self {
        let namespace = Namespace::new("oracle").unwrap();
        if namespace.has_ipv6() {
            // The only frames on the wire are those that the test sends.
            namespace.set_sysctl("net.ipv6.conf.default.disable_ipv6", "1").unwrap();
        }
        let interface = |name| namespace.interface(name);
        let coalescing = interface("gro0").create_polled_tap().unwrap();
        interface("gro0").set_offload(Offload::GenericReceive, true).unwrap();
        interface("gro0").set_offload(Offload::UdpForwarding, true).unwrap();
        let hold = interface("gro0").coalescing_hold().unwrap();
        interface("gro0").up().unwrap();
        let monitor = interface("gro0").monitor().unwrap();
        let [entry, exit] = ["in0", "out0"].map(|name| interface(name).create_tap().unwrap());
        bridge(&namespace);
        let buffer = vec![0; 1 << 17];
        Self { coalescing, hold, monitor, entry, exit, buffer, repeated: 0, _namespace: namespace }
    }

    /// Writes `burst` so that the kernel treats it as one poll, and returns the packets that the stack
    /// receives. Frames whose header the kernel refuses are removed from `burst`.
    pub(crate) fn coalesce(&mut self, burst: &mut Vec<Whole>) -> Vec<Whole> {
        for _ in 0..MOST_ATTEMPTS {
            let tick = now(ClockId::MonotonicCoarse);
            self.hold.set(LONG).unwrap();
            burst.retain(|whole| accepted(self.coalescing.write(&whole.header, &whole.bytes)));
            self.hold.set(Duration::ZERO).unwrap();
            self.coalescing.write(&[0; VNET_HEADER_BYTES], &SPARE).unwrap();
            let received = self.receive(burst.iter().map(Whole::segments).sum());
            // Each write is a poll of its own, after which the kernel holds frames until its clock ticks.
            if now(ClockId::MonotonicCoarse) == tick {
                return received;
            }
            self.repeated += 1;
        }
        panic!("a burst of {} frames was never one poll", burst.len());
    }

    /// Reads until `segments` segments and the spare frame have arrived.
    fn receive(&mut self, segments: usize) -> Vec<Whole> {
        let (mut received, mut count) = (Vec::new(), 0);
        let began = now(ClockId::Monotonic);
        while count < segments + 1 {
            let Some(seen) = self.monitor.read(&mut self.buffer).unwrap() else {
                let waited = now(ClockId::Monotonic) - began;
                assert!(waited < LONG, "{count} of {segments} segments arrived");
                self.monitor.wait(LONG).unwrap();
                continue;
            };
            let whole = Whole::seen(&self.buffer[..seen.bytes], seen.tag);
            count += whole.segments();
            if whole.bytes != SPARE {
                received.push(whole);
            }
        }
        assert_eq!(count, segments + 1, "more than was sent");
        received
    }

    /// Returns the frames that the kernel sends to a network for this GSO frame: `None` if the kernel refuses
    /// the write, an empty list if it drops the frame later.
    pub(crate) fn cut(&mut self, whole: &Whole) -> Option<Vec<Vec<u8>>> {
        if !accepted(self.entry.write(&whole.header, &whole.bytes)) {
            return None;
        }
        // On a busy machine the kernel may send later; this frame arrives after all others.
        self.entry.write(&[0; VNET_HEADER_BYTES], &LAST).unwrap();
        let mut frames = Vec::new();
        let began = now(ClockId::Monotonic);
        loop {
            let Some(bytes) = self.exit.read(&mut self.buffer).unwrap() else {
                assert!(now(ClockId::Monotonic) - began < LONG, "the last frame does not come");
                self.exit.wait(LONG).unwrap();
                continue;
            };
            if self.buffer[VNET_HEADER_BYTES..bytes] == LAST {
                return Some(frames);
            }
            assert_eq!((self.buffer[0] & 1, self.buffer[1]), (0, 0), "it has no offloads");
            let frame = &self.buffer[VNET_HEADER_BYTES..bytes];
            // The bridge also sends frames of its own, for multicast memberships.
            if frame[6..12] == whole.bytes[6..12] {
                frames.push(frame.to_vec());
            }
        }
    }
}

/// `true` if the kernel accepted the write.
fn accepted(written: io::Result<()>) -> bool {
    match written {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => false,
        other => {
            other.unwrap();
            true
        }
    }
}

fn bridge(namespace: &Namespace) {
    let bridge = namespace.interface("br0");
    bridge.create_bridge().unwrap();
    for family in ["iptables", "ip6tables", "arptables"] {
        // The packet filter would drop packets that it cannot parse, and trim padded ones. Not every kernel
        // has it.
        _ = namespace.set_sysctl(&format!("net.bridge.bridge-nf-call-{family}"), "0");
    }
    for name in ["in0", "out0"] {
        let port = namespace.interface(name);
        port.set_mtu(LARGEST_MTU).unwrap();
        port.join_bridge(&bridge).unwrap();
        port.up().unwrap();
    }
    bridge.up().unwrap();
}

fn now(clock: ClockId) -> Duration {
    clock_gettime(clock).try_into().unwrap()
}

const LONG: Duration = Duration::from_secs(30);
const MOST_ATTEMPTS: u32 = 10_000;
const LARGEST_MTU: u32 = 65_521;

/// A frame of an EtherType that no network stack handles.
const SPARE: [u8; 60] = {
    let mut frame = [0; 60];
    frame[12] = 0x88;
    frame[13] = 0xb5;
    frame
};

/// A frame like [`SPARE`], with addresses with which a bridge forwards it.
const LAST: [u8; 60] = {
    let mut frame = SPARE;
    (frame[0], frame[5], frame[6], frame[11]) = (2, 1, 2, 3);
    frame
};
