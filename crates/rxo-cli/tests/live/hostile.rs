//! Tests of `rxo guest` with a hostile front end, together with a guest that receives. The worst front end
//! blocks the thread that serves it, which must not take time from any other guest.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, memfd_create};
use rxo_device::Descriptors;
use rxo_driver::Bell;
use rxo_driver::vhost_user::features::VERSION_1;
use rxo_driver::vhost_user::{
    Channel, Region, Request, RingAddresses, RingDescriptor, RingNumber, SharedRegion,
};
use rxo_testbed::Lab;
use serde_json::Value;

use crate::Test;
use crate::endpoint::pattern;
use crate::guests::Socket;
use crate::process::{Rxo, wait_until};
use crate::switch::{Sockets, received, send};

pub(crate) const TESTS: &[Test] = &[
    ("a_guest_that_blocks_its_thread_delays_no_other", blocks),
    ("front_ends_that_never_rest_delay_no_other", storms),
    ("memory_with_holes_is_refused_unless_it_is_allowed", holes),
    ("a_guest_that_hangs_keeps_no_other_from_the_next_nic", outlasts),
];

const MEMORY_BYTES: u64 = 1 << 16;
const USER: u64 = 1 << 40;
/// The number of entries of a ring. Its buffers begin at [`BUFFERS`].
const ENTRIES: u16 = 16;
const BUFFERS: u64 = 0x8000;
const BUFFER_BYTES: u64 = 2_048;

/// A driver that has posted buffers for packets, and the eventfd by which it is notified.
struct Driver {
    channel: Channel,
    memory: File,
    notifications: File,
}

impl Driver {
    fn start(path: &str) -> Self {
        Self::connect(path).unwrap()
    }

    /// Connects a driver; `None` if the device does not accept it now.
    fn connect(path: &str) -> Option<Self> {
        let (memory, notifications) = (memory(), eventfd());
        let mut channel = Channel::new(UnixStream::connect(path).ok()?).unwrap();
        let call = notifications.try_clone().unwrap().into();
        let begin = vec![Request::SetOwner, Request::SetFeatures(VERSION_1), table(&memory)];
        let mut requests = [begin, ring(0, Some(call)), ring(1, None)].into_iter().flatten();
        let is_sent = requests.all(|request| channel.request(&request, false).is_ok());
        is_sent.then_some(Self { channel, memory, notifications })
    }

    /// Makes every thread wait that notifies the driver from now on.
    fn block(&self) {
        let mut more = u64::MAX - 1;
        // The counter may have a value already, so that less fits.
        while more > 0 {
            if (&self.notifications).write(&more.to_ne_bytes()).is_err() {
                more /= 2;
            }
        }
        fcntl_setfl(&self.notifications, OFlags::RDWR).unwrap();
    }
}

/// Creates an eventfd of this process.
fn eventfd() -> File {
    let (bell, mut file) = (Bell::new().unwrap(), None);
    bell.visit_descriptors(&mut |fd| file = Some(fd.try_clone_to_owned().unwrap()));
    file.unwrap().into()
}

/// Creates memory in which ring 0 has buffers and ring 1 is empty.
fn memory() -> File {
    let memory = File::from(memfd_create("guest", MemfdFlags::CLOEXEC).unwrap());
    // Zeros, because memory with holes is refused.
    memory.write_all_at(&[0; MEMORY_BYTES as usize], 0).unwrap();
    for n in 0..ENTRIES {
        let at = BUFFERS + u64::from(n) * BUFFER_BYTES;
        // The buffer is for the device to write, and not chained.
        let entry =
            [&at.to_le_bytes()[..], &(BUFFER_BYTES as u32).to_le_bytes(), &[2, 0, 0, 0]].concat();
        memory.write_all_at(&entry, 16 * u64::from(n)).unwrap();
        memory.write_all_at(&n.to_le_bytes(), part(0, 1) + 4 + 2 * u64::from(n)).unwrap();
    }
    memory.write_all_at(&ENTRIES.to_le_bytes(), part(0, 1) + 2).unwrap();
    memory
}

/// Creates a request that shares `memory` as the only region.
fn table(memory: &File) -> Request {
    let (guest_address, bytes) = (0, MEMORY_BYTES);
    let region = Region { guest_address, bytes, user_address: USER, file_offset: 0 };
    let file = memory.try_clone().unwrap().into();
    Request::SetMemTable(vec![SharedRegion { region, file }])
}

/// Returns the address of a part of a ring: 0 for its descriptors, 1 for the driver's area, 2 for the device's.
const fn part(ring: u32, part: u64) -> u64 {
    ring as u64 * 0x1000 + part * 0x400
}

fn ring(ring: u32, call: Option<OwnedFd>) -> Vec<Request> {
    let [descriptors, driver, device] = [0, 1, 2].map(|n| USER + part(ring, n));
    let kick = Some(eventfd().into());
    vec![
        Request::SetRingSize(RingNumber { ring, number: ENTRIES.into() }),
        Request::SetRingAddresses(RingAddresses {
            ring,
            flags: 0,
            descriptors,
            device,
            driver,
            log: 0,
        }),
        Request::SetRingCall(RingDescriptor { ring, file: call }),
        Request::SetRingKick(RingDescriptor { ring, file: kick }),
    ]
}

/// Ends a run. Returns its totals and its standard error.
fn ended(rxo: Rxo) -> (Value, String) {
    rxo.signal("INT");
    let (code, mut lines, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    (lines.pop().unwrap(), said)
}

/// Asserts that rxo has counted each frame.
fn all_is_counted(totals: &Value) {
    let imbalance = totals["imbalance"].as_object().unwrap();
    assert!(imbalance.values().all(|frames| frames == 0), "{totals}");
}

/// Frames for unknown addresses reach guest 0 as well. The notification of the first such frame blocks the
/// thread of guest 0.
fn blocks() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("blocks"));
    let (rxo, _) = Rxo::guests(lab.host(), &sockets.flags(&["", ""]));
    let driver = Driver::start(&sockets.path(0));
    // The driver is notified when its ring is ready.
    wait_until("the ring is ready", || (&driver.notifications).read(&mut [0; 8]).is_ok());
    driver.block();
    let bytes = pattern(20_000_000);
    for _ in 0..2 {
        let sink = sockets.sink(&lab, 1);
        send(lab.peer(), 1, &bytes);
        received(sink, &bytes);
    }
    let (totals, said) = ended(rxo);
    assert!(said.contains("guest 1 of 2 hangs"), "{said}");
    all_is_counted(&totals);
}

/// The only guest of `rxo run` shares a file that still consists of holes.
fn holes() {
    let lab = Lab::through().unwrap();
    for (flags, is_refused) in [("", true), (" --memory 64K --sparse", false)] {
        let socket = Socket::new("holes");
        let (rxo, _) = Rxo::start(lab.host(), &format!("{}{flags}", socket.run()));
        let empty = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
        let empty = File::from(empty);
        empty.set_len(MEMORY_BYTES).unwrap();
        let stream = UnixStream::connect(socket.path().to_string()).unwrap();
        let mut channel = Channel::new(stream.try_clone().unwrap()).unwrap();
        channel.request(&table(&empty), false).unwrap();
        // The answer, or the end of the connection, which may come before the request.
        let sent = channel.request(&Request::<OwnedFd>::GetFeatures, false);
        assert!(sent.is_ok() || is_refused, "{sent:?}");
        stream.set_nonblocking(false).unwrap();
        let answer = (&stream).read(&mut [0; 20]).unwrap_or_default();
        assert_eq!(answer == 0, is_refused);
        rxo.signal("INT");
        let (code, _, said) = rxo.end();
        assert_eq!((code, said.contains("it has holes")), (Some(0), is_refused), "{said}");
    }
}

/// Guest 0 hangs when the nic disappears, and still hangs when there is another nic.
fn outlasts() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("outlasts"));
    let flags = format!("{} --wait-for-nic", sockets.flags(&["", ""]));
    let (rxo, _) = Rxo::guests(lab.host(), &flags);
    let driver = Driver::start(&sockets.path(0));
    wait_until("the ring is ready", || (&driver.notifications).read(&mut [0; 8]).is_ok());
    driver.block();
    let bytes = pattern(1_000_000);
    let sink = sockets.sink(&lab, 1);
    send(lab.peer(), 1, &bytes);
    received(sink, &bytes);
    lab.peer().interface(Lab::PEER_INTERFACE).delete().unwrap();
    lab.connect_again(Lab::WIRE_INTERFACE).unwrap();
    let sink = sockets.sink(&lab, 1);
    send(lab.peer(), 1, &bytes);
    received(sink, &bytes);
    let (totals, said) = ended(rxo);
    assert!(said.contains("guest 1 of 2 hangs; rxo ends without it"), "{said}");
    all_is_counted(&totals);
}

/// Runs twelve guests. The first blocks its thread, four repeat one attack each, and the last receives meanwhile.
fn storms() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("storms"));
    let (rxo, _) = Rxo::guests(lab.host(), &sockets.flags(&[""; 12]));
    let (stop, bytes) = (AtomicBool::new(false), pattern(20_000_000));
    let blocking = Driver::start(&sockets.path(0));
    wait_until("the ring is ready", || (&blocking.notifications).read(&mut [0; 8]).is_ok());
    blocking.block();
    let attacks: [fn(&str); 4] = [storm, shrink, remap, features];
    thread::scope(|scope| {
        for (n, attack) in attacks.into_iter().enumerate() {
            let (path, stop) = (sockets.path(1 + n), &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    attack(&path);
                }
            });
        }
        let sink = sockets.sink(&lab, 11);
        send(lab.peer(), 11, &bytes);
        received(sink, &bytes);
        stop.store(true, Ordering::Relaxed);
    });
    let (totals, said) = ended(rxo);
    assert!(said.contains("guest 1 of 12 hangs"), "{said}");
    all_is_counted(&totals);
}

/// Connects, repeats a request many times, sends descriptors of files that may not be used, and disconnects.
fn storm(path: &str) {
    let Ok(stream) = UnixStream::connect(path) else { return };
    let mut channel = Channel::new(stream).unwrap();
    for _ in 0..64 {
        // The socket fills up, or is closed.
        if channel.request(&Request::<OwnedFd>::SetFeatures(VERSION_1), false).is_err() {
            return;
        }
    }
    let region = Region { guest_address: 0, bytes: 1, user_address: USER, file_offset: 0 };
    let file = || OwnedFd::from(File::open("/dev/null").unwrap());
    let table = (0..8).map(|_| SharedRegion { region, file: file() }).collect();
    _ = channel.request(&Request::SetMemTable(table), false);
}

/// Starts a ring, truncates its memory, and disconnects.
fn shrink(path: &str) {
    let Some(driver) = Driver::connect(path) else { return };
    driver.memory.set_len(0).unwrap();
}

/// Shares the same memory many times.
fn remap(path: &str) {
    let Some(mut driver) = Driver::connect(path) else { return };
    for _ in 0..100 {
        if driver.channel.request(&table(&driver.memory), false).is_err() {
            return;
        }
    }
}

/// Negotiates the same features many times, so that its rings are created again.
fn features(path: &str) {
    let Some(mut driver) = Driver::connect(path) else { return };
    for _ in 0..1_000 {
        let request = Request::<OwnedFd>::SetFeatures(VERSION_1);
        if driver.channel.request(&request, false).is_err() {
            return;
        }
    }
}
