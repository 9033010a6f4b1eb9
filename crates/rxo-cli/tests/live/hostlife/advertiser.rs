//! A router that advertises itself and a prefix, like `radvd`.

use std::net::{Ipv6Addr, SocketAddrV6};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket, sockopt};
use rxo_testbed::Lab;

/// Lifetimes that a router advertises, in seconds.
#[derive(Clone, Copy)]
pub(super) struct Lifetimes {
    pub(super) router: u16,
    pub(super) valid: u32,
    pub(super) preferred: u32,
}

/// A router that sends an advertisement every 200 ms, until it is dropped.
pub(super) struct Advertiser {
    stop: Arc<AtomicBool>,
    lifetimes: Arc<Mutex<Lifetimes>>,
    /// Longest time between two advertisements, in milliseconds: a busy machine may delay them.
    longest_gap_ms: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

const BETWEEN: Duration = Duration::from_millis(200);

impl Advertiser {
    /// The advertised prefix.
    pub(super) const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, 0);

    /// Starts the router on the peer's end of the wire.
    pub(super) fn start(lab: &Lab, lifetimes: Lifetimes) -> Self {
        let open = || socket(AddressFamily::INET6, SocketType::RAW, Some(ipproto::ICMPV6)).unwrap();
        let socket = lab.peer().run(open).unwrap();
        sockopt::set_ipv6_multicast_hops(&socket, 255).unwrap();
        let index = lab.peer().interface(Lab::PEER_INTERFACE).index().unwrap();
        let all_nodes = SocketAddrV6::new(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1), 0, 0, index);
        let (stop, longest_gap_ms) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let lifetimes = Arc::new(Mutex::new(lifetimes));
        let thread = thread::spawn({
            let (stop, gap) = (Arc::clone(&stop), Arc::clone(&longest_gap_ms));
            let lifetimes = Arc::clone(&lifetimes);
            move || advertise(&socket, all_nodes, &lifetimes, &stop, &gap)
        });
        Self { stop, lifetimes, longest_gap_ms, thread: Some(thread) }
    }

    /// Advertises these lifetimes from now on.
    pub(super) fn change(&self, lifetimes: Lifetimes) {
        *self.lifetimes.lock().unwrap() = lifetimes;
    }

    /// Returns `true` if it sent often enough that nothing with this lifetime could expire.
    pub(super) fn kept_up(&self, lifetime: Duration) -> bool {
        u128::from(self.longest_gap_ms.load(Ordering::Relaxed)) < lifetime.as_millis() / 2
    }
}

impl Drop for Advertiser {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        _ = self.thread.take().unwrap().join();
    }
}

fn advertise(
    socket: &OwnedFd,
    to: SocketAddrV6,
    lifetimes: &Mutex<Lifetimes>,
    stop: &AtomicBool,
    longest_gap_ms: &AtomicU64,
) {
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let bytes = advertisement(*lifetimes.lock().unwrap());
        // Without a carrier nothing is sent, and the error does not matter.
        _ = sendto(socket, &bytes, SendFlags::empty(), &to);
        let gap = last.elapsed().as_millis() as u64;
        longest_gap_ms.fetch_max(gap, Ordering::Relaxed);
        last = Instant::now();
        thread::sleep(BETWEEN);
    }
}

/// Returns an advertisement (RFC 4861, sections 4.2 and 4.6.2). The kernel completes the checksum.
fn advertisement(lifetimes: Lifetimes) -> Vec<u8> {
    let Lifetimes { router, valid, preferred } = lifetimes;
    let mut bytes = vec![134, 0, 0, 0, 64, 0];
    bytes.extend(router.to_be_bytes());
    bytes.extend([0; 8]);
    bytes.extend([3, 4, 64, ON_LINK | AUTONOMOUS]);
    bytes.extend(valid.to_be_bytes());
    bytes.extend(preferred.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(Advertiser::PREFIX.octets());
    bytes
}

const ON_LINK: u8 = 0x80;
const AUTONOMOUS: u8 = 0x40;
