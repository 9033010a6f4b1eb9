//! Sets and reads socket options that the standard library does not offer.

use std::io;
use std::os::fd::AsRawFd;

use super::{Interest, check};

/// Fixes the size of a socket's buffer: with `Interest::Write` the send buffer, with `Interest::Read` the receive
/// buffer. The kernel doubles the number of bytes and caps it at its limits.
pub(crate) fn set_buffer_bytes(
    socket: &impl AsRawFd,
    which: Interest,
    bytes: usize,
) -> io::Result<()> {
    let option = match which {
        Interest::Read => libc::SO_RCVBUF,
        Interest::Write => libc::SO_SNDBUF,
    };
    let value = i32::try_from(bytes).unwrap_or(i32::MAX);
    set(socket, libc::SOL_SOCKET, option, &value.to_ne_bytes())
}

/// Fixes the size of a socket's receive buffer in bytes, without regard to the kernel's limits. Needs
/// privilege.
pub(crate) fn force_receive_buffer_bytes(socket: &impl AsRawFd, bytes: usize) -> io::Result<()> {
    let value = i32::try_from(bytes).unwrap_or(i32::MAX);
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &value.to_ne_bytes())
}

/// Sets the number of bytes below which the kernel does not wake the reader of a TCP socket.
pub(crate) fn set_receive_low_water(socket: &impl AsRawFd, bytes: usize) -> io::Result<()> {
    let value = i32::try_from(bytes).unwrap_or(i32::MAX);
    set(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &value.to_ne_bytes())
}

/// Limits the rate at which a socket sends to `bytes_per_s`.
pub(crate) fn set_max_pacing_rate(socket: &impl AsRawFd, bytes_per_s: u64) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &bytes_per_s.to_ne_bytes())
}

/// Returns the number of bytes in a TCP socket's stream that the peer has not acknowledged, whether they were sent or
/// not.
pub(crate) fn unacknowledged_bytes(socket: &impl AsRawFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one integer, which lives through the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) })?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// Returns the number of bytes that the kernel has allocated or reserved for a socket's queues.
pub(crate) fn memory_bytes(socket: &impl AsRawFd) -> io::Result<u64> {
    let mut values = [0_u32; MEMORY_VALUES];
    let mut length = socklen(size_of_val(&values));
    let (fd, pointer) = (socket.as_raw_fd(), (&raw mut values).cast());
    // SAFETY: the kernel writes at most `length` bytes into `values`, which is that large.
    let result = unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, pointer, &raw mut length)
    };
    check(result)?;
    Ok(MEMORY_HELD.iter().map(|&index| u64::from(values[index])).sum())
}

/// The number of values of `SO_MEMINFO` (`SK_MEMINFO_VARS` of linux/sock_diag.h).
const MEMORY_VALUES: usize = 9;
/// The indices of the values of `SO_MEMINFO` that count memory in use: received data, reserved memory, data
/// queued to be sent, options, and backlog.
const MEMORY_HELD: [usize; 5] = [0, 4, 5, 6, 7];

/// Sets the congestion control algorithm of a TCP socket.
pub(crate) fn set_congestion_control(socket: &impl AsRawFd, name: &str) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes())
}

/// Returns the number of segments that a TCP socket has retransmitted since it was opened.
pub(crate) fn retransmitted_segments(socket: &impl AsRawFd) -> io::Result<u64> {
    Ok(u64::from(tcp_info(socket)?.tcpi_total_retrans))
}

/// The state of the sending side of a TCP socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderInfo {
    pub(crate) cwnd_segments: u32,
    pub(crate) mss_bytes: u32,
    /// The payload that the peer has acknowledged, in bytes.
    pub(crate) acknowledged_bytes: u64,
}

/// Returns the congestion window and the acknowledged bytes of a TCP socket.
pub(crate) fn sender_info(socket: &impl AsRawFd) -> io::Result<SenderInfo> {
    let info = tcp_info(socket)?;
    Ok(SenderInfo {
        cwnd_segments: info.tcpi_snd_cwnd,
        mss_bytes: info.tcpi_snd_mss,
        acknowledged_bytes: info.tcpi_bytes_acked,
    })
}

fn tcp_info(socket: &impl AsRawFd) -> io::Result<libc::tcp_info> {
    // SAFETY: tcp_info is plain integers, for which all zeros is a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = socklen(size_of::<libc::tcp_info>());
    let (fd, pointer) = (socket.as_raw_fd(), (&raw mut info).cast());
    // SAFETY: the kernel writes at most `length` bytes into `info`, which is that large.
    let result = unsafe {
        libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, pointer, &raw mut length)
    };
    check(result)?;
    Ok(info)
}

/// Makes a socket drop every packet that arrives for it.
pub(crate) fn drop_arrivals(socket: &impl AsRawFd) -> io::Result<()> {
    // A filter that returns 0 lets the socket keep 0 bytes of each packet.
    let mut none =
        libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: &raw mut none };
    let (fd, pointer) = (socket.as_raw_fd(), (&raw const program).cast());
    let length = socklen(size_of::<libc::sock_fprog>());
    // SAFETY: the kernel reads the program and its one instruction, which live through the call.
    check(unsafe {
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, pointer, length)
    })
}

/// Lets a socket receive packets again, after [`drop_arrivals`].
pub(crate) fn take_arrivals(socket: &impl AsRawFd) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0_i32.to_ne_bytes())
}

fn set(socket: &impl AsRawFd, level: i32, option: i32, value: &[u8]) -> io::Result<()> {
    let (fd, pointer, length) = (socket.as_raw_fd(), value.as_ptr().cast(), socklen(value.len()));
    // SAFETY: the kernel reads `length` bytes of `value`, which lives through the call.
    check(unsafe { libc::setsockopt(fd, level, option, pointer, length) })
}

fn socklen(length: usize) -> libc::socklen_t {
    libc::socklen_t::try_from(length).unwrap_or(libc::socklen_t::MAX)
}
