//! System calls `recvmmsg` and `sendmmsg`, with the control messages for trains.
#![allow(unsafe_code, reason = "the calls take structures of pointers")]

use std::io;
use std::mem::{self, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use libc::{c_int, iovec, mmsghdr, sockaddr_in, sockaddr_in6, sockaddr_storage};

use super::control::{Control, Details};
use super::message::Message;
use super::source::MESSAGE_BYTES;
use crate::sys::{self, Plain, option, set_option};

/// Maximum number of messages that one call receives or sends.
pub(super) const MOST_MESSAGES: usize = 32;

/// Maximum number of pieces of all messages of a call.
const MOST_PIECES: usize = 512;

// SAFETY: the structure has only integers and bytes.
unsafe impl Plain for sockaddr_storage {}
// SAFETY: the structure has only integers and pointers, for which zeros are values; only the calls below
// follow the pointers.
unsafe impl Plain for mmsghdr {}
// SAFETY: the structure has only an integer and a pointer.
unsafe impl Plain for iovec {}
// SAFETY: the structure has only integers and pointers, for which zeros are values.
unsafe impl Plain for libc::msghdr {}

/// A received message: a train, or a single datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    pub(super) from: Option<SocketAddr>,
    pub(super) bytes: usize,
    pub(super) details: Details,
}

impl Received {
    pub(super) const NOTHING: Self =
        Self { from: None, bytes: 0, details: Details { datagram_bytes: None, to: None, ecn: 0 } };
}

/// Requests kernel buffers of `bytes` bytes; without privilege, up to the system's limit.
pub(super) fn set_buffers(socket: BorrowedFd<'_>, bytes: u32) {
    let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    for (forced, asked) in
        [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
    {
        // The kernel reports twice what was asked for. A larger buffer of the caller stays.
        if option::<c_int>(socket, libc::SOL_SOCKET, asked).is_ok_and(|has| has / 2 >= bytes) {
            continue;
        }
        if set_option(socket, libc::SOL_SOCKET, forced, &bytes).is_err() {
            let _smaller = set_option(socket, libc::SOL_SOCKET, asked, &bytes);
        }
    }
}

/// Enables trains on receipt. Returns `false` if the kernel does not support them.
pub(super) fn receive_trains(socket: BorrowedFd<'_>) -> bool {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, &1).is_ok()
}

/// Returns `true` if the kernel supports trains on transmission.
pub(super) fn can_send_trains(socket: BorrowedFd<'_>) -> bool {
    set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, &0).is_ok()
}

/// Receives messages into `memory`, which has [`MESSAGE_BYTES`] for each. Returns the number of messages
/// received, 0 if none is waiting.
pub(super) fn receive(
    socket: BorrowedFd<'_>,
    memory: &mut [u8],
    received: &mut [Received; MOST_MESSAGES],
) -> io::Result<usize> {
    let mut headers = [mmsghdr::zeroed(); MOST_MESSAGES];
    let mut pieces = [iovec::zeroed(); MOST_MESSAGES];
    let mut names = [sockaddr_storage::zeroed(); MOST_MESSAGES];
    let mut controls = [Control::EMPTY; MOST_MESSAGES];
    let mut wanted = 0;
    for (n, memory) in memory.chunks_exact_mut(MESSAGE_BYTES).take(MOST_MESSAGES).enumerate() {
        pieces[n] = iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() };
        let header = &mut headers[n].msg_hdr;
        header.msg_name = (&raw mut names[n]).cast();
        header.msg_namelen = size_of::<sockaddr_storage>() as _;
        header.msg_iov = &raw mut pieces[n];
        header.msg_iovlen = 1;
        header.msg_control = controls[n].as_mut_ptr();
        header.msg_controllen = Control::BYTES as _;
        wanted += 1;
    }
    let count = loop {
        // SAFETY: each header points to live memory of the length that it states, and nothing else uses it.
        let result = unsafe {
            let fd = socket.as_raw_fd();
            libc::recvmmsg(
                fd,
                headers.as_mut_ptr(),
                wanted,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        if let Ok(count) = usize::try_from(result) {
            break count;
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            // If the socket is connected, the errors that routers and the peer report for earlier sends count
            // as well.
            Some(
                libc::EAGAIN
                | libc::ECONNREFUSED
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::EMSGSIZE
                | libc::EACCES
                | libc::EPROTO
                | libc::ENOPROTOOPT
                | libc::EHOSTDOWN
                | libc::ENONET
                | libc::EOPNOTSUPP,
            ) => return Ok(0),
            _ => return Err(error),
        }
    };
    for (n, header) in headers[..count].iter().enumerate() {
        received[n] = Received {
            from: address(&names[n]),
            bytes: header.msg_len as usize,
            details: Details::of(&header.msg_hdr),
        };
    }
    Ok(count)
}

/// Sends messages in order. Returns the number of messages that the system accepted.
///
/// # Errors
/// If the system refuses the first message.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    names: Names,
    messages: &[Message<'_>],
) -> io::Result<usize> {
    let mut headers = [mmsghdr::zeroed(); MOST_MESSAGES];
    let mut pieces = [iovec::zeroed(); MOST_PIECES];
    let mut addresses = [sockaddr_storage::zeroed(); MOST_MESSAGES];
    let mut controls = [Control::EMPTY; MOST_MESSAGES];
    let (mut count, mut used) = (0, 0);
    for message in messages.iter().take(MOST_MESSAGES) {
        let Some(taken) = gather(message, &mut pieces[used..]) else { break };
        let header = &mut headers[count].msg_hdr;
        if names.peer != Some(message.to) {
            let name = &mut addresses[count];
            header.msg_namelen = set_address(name, message.to, names.is_ipv6) as _;
            header.msg_name = ptr::from_mut(name).cast();
        }
        header.msg_iov = &raw mut pieces[used];
        header.msg_iovlen = taken as _;
        let control = &mut controls[count];
        describe(message, control);
        if control.used() > 0 {
            header.msg_control = control.as_mut_ptr();
            header.msg_controllen = control.used() as _;
        }
        (count, used) = (count + 1, used + taken);
    }
    // SAFETY: each header points to live memory of the length that it states, which the kernel only reads.
    unsafe { sys::send_messages(socket, &mut headers[..count], libc::MSG_NOSIGNAL) }
}

/// The properties of a socket that decide the form of the addresses in its messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    /// `true` if the socket uses IPv6; IPv4 addresses are then written as mapped addresses.
    pub(super) is_ipv6: bool,
    /// The address that the socket is connected to; messages to it need no address. `None` if it is not
    /// connected.
    pub(super) peer: Option<SocketAddr>,
}

/// Writes the pieces of a message. Returns their number; `None` if `pieces` has too few free entries.
fn gather(message: &Message<'_>, pieces: &mut [iovec]) -> Option<usize> {
    let mut count = 0;
    for bytes in message.slices() {
        let last = pieces[..count].last_mut();
        // Datagrams that lie one after the other are one piece.
        if let Some(last) = last.filter(|last| end(last).cast_const() == bytes.as_ptr().cast()) {
            last.iov_len += bytes.len();
            continue;
        }
        let iov_base = bytes.as_ptr().cast_mut().cast();
        *pieces.get_mut(count)? = iovec { iov_base, iov_len: bytes.len() };
        count += 1;
    }
    Some(count)
}

fn end(piece: &iovec) -> *mut libc::c_void {
    piece.iov_base.wrapping_byte_add(piece.iov_len)
}

fn describe(message: &Message<'_>, control: &mut Control) {
    if message.datagrams() > 1 {
        control.set_datagram_bytes(message.datagram_bytes);
    }
    if message.ecn != 0 {
        control.set_ecn(message.ecn, message.to.ip().to_canonical());
    }
    if let Some(from) = message.from {
        control.set_source(from);
    }
}

/// Asks the kernel to report the destination address and the traffic class of each message.
///
/// # Errors
/// If the system refuses.
pub(super) fn receive_details(socket: BorrowedFd<'_>, is_ipv6: bool) -> io::Result<()> {
    if !is_ipv6 {
        set_option(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, &1)?;
        return set_option(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, &1);
    }
    set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, &1)?;
    // A socket for IPv6 alone refuses this option, and does not need it.
    let _unless_also_ipv4 = set_option(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, &1);
    set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, &1)
}

/// Converts an address from the kernel's form; a mapped IPv4 address becomes an IPv4 address. `None` for
/// other address families.
fn address(name: &sockaddr_storage) -> Option<SocketAddr> {
    let name = ptr::from_ref(name);
    match c_int::from(
        // SAFETY: the pointer is to a live structure whose family every kind of address has at its start.
        unsafe { (*name).ss_family },
    ) {
        libc::AF_INET => {
            // SAFETY: the family says which of the structures, all smaller than the storage, it is.
            let v4 = unsafe { *name.cast::<sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddr::new(IpAddr::V4(ip), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { *name.cast::<sockaddr_in6>() };
            let (ip, port) = (Ipv6Addr::from(v6.sin6_addr.s6_addr), u16::from_be(v6.sin6_port));
            Some(match ip.to_ipv4_mapped() {
                Some(ip) => SocketAddr::new(IpAddr::V4(ip), port),
                None => SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into(),
            })
        }
        _ => None,
    }
}

/// Writes the address `to` in the form for a socket of IPv6 or of IPv4. Returns its length in bytes.
fn set_address(name: &mut sockaddr_storage, to: SocketAddr, is_ipv6: bool) -> usize {
    let name = ptr::from_mut(name);
    match to {
        SocketAddr::V4(v4) if !is_ipv6 => {
            // SAFETY: the structure has only integers, for which zeros are values.
            let mut address: sockaddr_in = unsafe { mem::zeroed() };
            address.sin_family = libc::AF_INET as _;
            address.sin_port = v4.port().to_be();
            address.sin_addr.s_addr = u32::from(*v4.ip()).to_be();
            // SAFETY: the storage is aligned for every address, and larger.
            unsafe { name.cast::<sockaddr_in>().write(address) };
            size_of::<sockaddr_in>()
        }
        _ => {
            let v6 = match to {
                SocketAddr::V4(v4) => SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0),
                SocketAddr::V6(v6) => v6,
            };
            // SAFETY: the structure has only integers, for which zeros are values.
            let mut address: sockaddr_in6 = unsafe { mem::zeroed() };
            address.sin6_family = libc::AF_INET6 as _;
            address.sin6_port = v6.port().to_be();
            address.sin6_addr.s6_addr = v6.ip().octets();
            address.sin6_scope_id = v6.scope_id();
            address.sin6_flowinfo = v6.flowinfo();
            // SAFETY: the storage is aligned for every address, and larger.
            unsafe { name.cast::<sockaddr_in6>().write(address) };
            size_of::<sockaddr_in6>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_way_through_the_kernels_form() {
        let rows = ["10.1.2.3:51820", "[2001:db8::7]:9", "[fe80::1%4]:1"];
        for text in rows {
            let to: SocketAddr = text.parse().unwrap();
            let mut name = sockaddr_storage::zeroed();
            set_address(&mut name, to, true);
            assert_eq!(address(&name), Some(to), "{text}");
        }
        let (mut name, to) = (sockaddr_storage::zeroed(), rows[0].parse().unwrap());
        assert_eq!(set_address(&mut name, to, false), size_of::<sockaddr_in>());
        assert_eq!(address(&name), Some(to));
        assert_eq!(address(&sockaddr_storage::zeroed()), None);
    }
}
