//! A packet socket: sends and receives whole frames on one interface.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::check;

/// A socket that receives the IPv4 frames of one interface, and sends frames.
#[derive(Debug)]
pub struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Opens a socket on the interface with this index, in the calling thread's namespace.
    pub fn open(index: u32) -> io::Result<Self> {
        let protocol = libc::c_int::from((libc::ETH_P_IP as u16).to_be());
        // SAFETY: socket takes no pointers.
        let fd =
            unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
        check(fd)?;
        // SAFETY: the descriptor is new, and nothing else owns it.
        let socket = Self(unsafe { OwnedFd::from_raw_fd(fd) });
        // SAFETY: sockaddr_ll consists of bytes and integers, for which all zeros is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_IP as u16).to_be();
        address.sll_ifindex = index.cast_signed();
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel reads `length` bytes of `address`, which lives through the call.
        check(unsafe { libc::bind(fd, (&raw const address).cast(), length) })?;
        Ok(socket)
    }

    /// Sends a frame. Waits for free space if the queue is full.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        loop {
            // SAFETY: the kernel reads `frame.len()` bytes of `frame`.
            let sent =
                unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
            match io::Error::last_os_error() {
                _ if sent >= 0 => return Ok(()),
                // The queue of the interface is full, so the frame is lost there, as on any
                // network.
                error if error.raw_os_error() == Some(libc::ENOBUFS) => return Ok(()),
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            }
        }
    }

    /// Receives the next frame; `None` if no frame waits. A frame longer than the buffer is truncated.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let (fd, length) = (self.0.as_raw_fd(), buffer.len());
        // SAFETY: the kernel writes at most `length` bytes into `buffer`.
        let got = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), length, libc::MSG_DONTWAIT) };
        match usize::try_from(got) {
            Ok(got) => Ok(Some(got)),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error if error.kind() == io::ErrorKind::Interrupted => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Waits until a frame has arrived or `time` has passed.
    pub fn wait(&self, time: Duration) -> io::Result<()> {
        wait_readable(&self.0, time)
    }
}

/// Waits until `socket` can be read or `time` has passed.
pub fn wait_readable(socket: &impl AsRawFd, time: Duration) -> io::Result<()> {
    wait_for(libc::POLLIN, socket, time)
}

/// Waits until `socket` can be written or `time` has passed.
pub fn wait_writable(socket: &impl AsRawFd, time: Duration) -> io::Result<()> {
    wait_for(libc::POLLOUT, socket, time)
}

fn wait_for(events: libc::c_short, socket: &impl AsRawFd, time: Duration) -> io::Result<()> {
    if time.is_zero() {
        return Ok(());
    }
    let mut polled = libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 };
    let time = libc::timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX) as _,
        tv_nsec: time.subsec_nanos().into(),
    };
    // SAFETY: the kernel reads and writes one pollfd and reads one timespec; both live through
    // the call.
    let ready = unsafe { libc::ppoll(&raw mut polled, 1, &raw const time, std::ptr::null()) };
    match check(ready) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        other => other,
    }
}
