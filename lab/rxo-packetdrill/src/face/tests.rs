//! Calls the table as packetdrill does.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::mpsc;
use std::time::{Duration as RealDuration, Instant as RealInstant};

use super::*;
use crate::abi::{AF_INET, F_SETFL, O_NONBLOCK, SOCK_STREAM};

/// A table that is freed at the end.
struct Loaded(Interface);

impl Loaded {
    fn with(flags: &CStr) -> Self {
        let mut table = MaybeUninit::uninit();
        // SAFETY: room for a table, and a zero-terminated text.
        unsafe { packetdrill_interface_init(flags.as_ptr(), table.as_mut_ptr()) };
        // SAFETY: it was filled.
        Self(unsafe { table.assume_init() })
    }

    fn socket(&self) -> c_int {
        // SAFETY: the table's own session.
        unsafe { (self.0.socket)(self.0.userdata, AF_INET, SOCK_STREAM, 0) }
    }

    fn connect(&self, fd: c_int) -> c_int {
        // SAFETY: all zeros is a valid address.
        let mut to: libc::sockaddr_in = unsafe { MaybeUninit::zeroed().assume_init() };
        to.sin_family = AF_INET as libc::sa_family_t;
        to.sin_port = 8080_u16.to_be();
        to.sin_addr.s_addr = u32::from_be_bytes([192, 0, 2, 1]).to_be();
        let bytes = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        // SAFETY: the table's own session, and an address of that length.
        unsafe { (self.0.connect)(self.0.userdata, fd, (&raw const to).cast(), bytes) }
    }

    fn connect_without_waiting(&self, fd: c_int) {
        // SAFETY: the table's own session.
        unsafe { (self.0.fcntl)(self.0.userdata, fd, F_SETFL, O_NONBLOCK) };
        assert_eq!((self.connect(fd), errno()), (-1, Errno::EINPROGRESS.0));
    }

    fn send(&self, packet: &[u8]) {
        // SAFETY: the table's own session, and a packet of that length.
        let result =
            unsafe { (self.0.netdev_send)(self.0.userdata, packet.as_ptr().cast(), packet.len()) };
        assert_eq!(result, 0);
    }

    fn receive(&self) -> (Vec<u8>, i64) {
        let (mut packet, mut time_us) = (vec![0; 2000], 0);
        let mut bytes = packet.len();
        // SAFETY: the table's own session, and buffers of their sizes.
        let result = unsafe {
            let place = packet.as_mut_ptr().cast();
            (self.0.netdev_receive)(self.0.userdata, place, &raw mut bytes, &raw mut time_us)
        };
        assert_eq!(result, 0);
        packet.truncate(bytes);
        (packet, time_us)
    }

    fn time_us(&self) -> i64 {
        let mut time = timeval();
        // SAFETY: the table's own session, and a place for a time.
        let result = unsafe { (self.0.gettimeofday)(self.0.userdata, &raw mut time, null_mut()) };
        assert_eq!(result, 0);
        time.tv_sec * 1_000_000 + time.tv_usec
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: called once, and nothing uses the session afterwards.
        unsafe { (self.0.free)(self.0.userdata) };
    }
}

fn timeval() -> libc::timeval {
    libc::timeval { tv_sec: 0, tv_usec: 0 }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[test]
fn a_syn_leaves_and_is_repeated_on_virtual_time() {
    let loaded = Loaded::with(c"");
    let fd = loaded.socket();
    assert!(fd > 2);
    // SAFETY: the table's own session.
    let set = unsafe { (loaded.0.fcntl)(loaded.0.userdata, fd, F_SETFL, O_NONBLOCK) };
    assert_eq!(set, 0);
    assert_eq!((loaded.connect(fd), errno()), (-1, Errno::EINPROGRESS.0));
    let (syn, first_us) = loaded.receive();
    assert_eq!(syn[9], 6);
    let (again, second_us) = loaded.receive();
    assert_eq!((again[33], second_us - first_us), (syn[33], 1_000_000));
    // SAFETY: the table's own session.
    assert_eq!(unsafe { (loaded.0.close)(loaded.0.userdata, fd) }, 0);
    let nothing = loaded.receive();
    assert!(nothing.0.is_empty());
}

/// The thread that blocks reads the clock before it moves on.
#[test]
fn a_blocked_call_returns_at_its_time() {
    let loaded = Loaded::with(c"handshake_timeout=5000");
    let fd = loaded.socket();
    let begun_us = loaded.time_us();
    std::thread::scope(|scope| {
        let table = Shared(&loaded);
        let (tell, hear) = mpsc::channel();
        let blocked = scope.spawn(move || {
            let loaded = table.get();
            tell.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
            let result = (loaded.connect(fd), errno());
            (result, loaded.time_us())
        });
        // The call must be blocked before time advances.
        wait_until_asleep(&Path::new("/proc").join(hear.recv().unwrap()));
        // SAFETY: the table's own session.
        assert_eq!(unsafe { (loaded.0.usleep)(loaded.0.userdata, 60_000_000) }, 0);
        let (result, ended_us) = blocked.join().unwrap();
        assert_eq!(result, (-1, Errno::ETIMEDOUT.0));
        let took_us = ended_us - begun_us;
        assert!((5_000_000..5_001_000).contains(&took_us), "{took_us}");
    });
}

/// Waits until the thread with this directory in `/proc` sleeps.
fn wait_until_asleep(thread: &Path) {
    let begun = RealInstant::now();
    loop {
        let stat = std::fs::read_to_string(thread.join("stat")).unwrap();
        // The state follows the name, which stands in brackets.
        if stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S')) {
            return;
        }
        assert!(begun.elapsed() < RealDuration::from_secs(60), "it never blocked: {stat}");
        std::thread::sleep(RealDuration::from_millis(1));
    }
}

/// packetdrill calls from two threads.
struct Shared<'a>(&'a Loaded);
// SAFETY: a session is locked by every call.
unsafe impl Send for Shared<'_> {}

impl<'a> Shared<'a> {
    fn get(self) -> &'a Loaded {
        self.0
    }
}

#[test]
fn wrong_flags_and_null_pointers_are_errors() {
    let refusing = Loaded::with(c"nope=1");
    assert_eq!((refusing.socket(), errno()), (-1, Errno::EINVAL.0));
    let loaded = Loaded::with(c"");
    let fd = loaded.socket();
    // SAFETY: the table's own session; null is refused.
    unsafe {
        let data = loaded.0.userdata;
        assert_eq!(((loaded.0.bind)(data, fd, null(), 0), errno()), (-1, Errno::EFAULT.0));
        assert_eq!(((loaded.0.write)(data, fd, null(), 9), errno()), (-1, Errno::EFAULT.0));
        assert_eq!(((loaded.0.pipe)(data, null_mut()), errno()), (-1, Errno::ENOSYS.0));
        // The socket is not connected, so no read succeeds. The point is that null does not block.
        assert_eq!(((loaded.0.read)(data, fd, null_mut(), 9), errno()), (-1, Errno::ENOTCONN.0));
        assert_eq!(((loaded.0.close)(data, 4000), errno()), (-1, Errno::EBADF.0));
        assert_eq!(((loaded.0.netdev_send)(data, null(), 3), errno()), (-1, Errno::EFAULT.0));
        packetdrill_interface_init(null(), null_mut());
    }
}

/// A read without a buffer neither loses the data nor blocks (it did both: a script hung).
#[test]
fn a_read_into_nowhere_leaves_the_text() {
    let loaded = Loaded::with(c"timestamps=off,sack=off,wscale=off");
    let (fd, data) = (loaded.socket(), loaded.0.userdata);
    loaded.connect_without_waiting(fd);
    let (syn, _) = loaded.receive();
    let ours = u32::from_be_bytes(*syn[24..].first_chunk().unwrap()) + 1;
    loaded.send(&answer(&syn, (0, ours), SYN | ACK, b""));
    // From now on a call that finds nothing blocks.
    // SAFETY: the table's own session.
    unsafe { (loaded.0.fcntl)(data, fd, F_SETFL, 0) };
    loaded.send(&answer(&syn, (1, ours), ACK, b"text"));
    let mut text = [0_u8; 8];
    // SAFETY: the table's own session; null is refused, and a place of its size is written.
    unsafe {
        assert_eq!(((loaded.0.read)(data, fd, null_mut(), 9), errno()), (-1, Errno::EFAULT.0));
        assert_eq!(((loaded.0.recv)(data, fd, null_mut(), 9, 0), errno()), (-1, Errno::EFAULT.0));
        assert_eq!((loaded.0.read)(data, fd, text.as_mut_ptr().cast(), 8), 4);
    }
    assert_eq!(&text[..4], b"text");
}

/// packetdrill reads TCP_INFO by the system's own call; other descriptors belong to the system.
#[test]
fn the_systems_getsockopt_knows_the_sessions_descriptors() {
    let loaded = Loaded::with(c"");
    let fd = loaded.socket();
    loaded.connect_without_waiting(fd);
    let mut info = [0_u8; 104];
    let mut bytes = info.len() as libc::socklen_t;
    let place = info.as_mut_ptr().cast();
    // SAFETY: a place of that length.
    let result =
        unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, place, &raw mut bytes) };
    // In SYN-SENT.
    assert_eq!((result, bytes, info[0]), (0, 104, 2));
    let ours = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(ours.take_error().unwrap().is_none());
}

const SYN: u8 = 2;
const ACK: u8 = 16;

/// A packet that answers `syn`, with SEQ and ACK, flags and payload.
fn answer(syn: &[u8], (seq, ack): (u32, u32), flags: u8, text: &[u8]) -> Vec<u8> {
    use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
    use rxo_wire::{SeqNumber, TcpFlags, checksum::Summer};
    let address = |at: usize| std::net::Ipv4Addr::from(*syn[at..].first_chunk::<4>().unwrap());
    let port = |at: usize| u16::from_be_bytes([syn[at], syn[at + 1]]);
    let tcp = TcpHeader {
        source_port: port(22),
        destination_port: port(20),
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags: TcpFlags::from_bits(flags.into()),
        window: 10_000,
        urgent: 0,
        options: &[],
    };
    let ip = Ipv4Header {
        source: address(16),
        destination: address(12),
        protocol: 6,
        payload_bytes: tcp.bytes() + text.len(),
        ..Ipv4Header::default()
    };
    let mut bytes = vec![0; ip.bytes() + tcp.bytes() + text.len()];
    let segment = ip.write(&mut bytes).unwrap();
    tcp.write(segment).unwrap().copy_from_slice(text);
    write_tcp_checksum(segment, ip.pseudo_header(), Summer::portable()).unwrap();
    bytes
}
