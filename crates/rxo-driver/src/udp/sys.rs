//! System calls `recvmmsg` and `sendmmsg`, with the control messages for trains.
#![allow(unsafe_code, reason = "the calls take structures of pointers")]

use std::io;
use std::mem::{self, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use libc::{c_int, iovec, mmsghdr, sockaddr_in, sockaddr_in6, sockaddr_storage};

use super::outbox::Message;
use super::source::MESSAGE_BYTES;
use crate::sys::{self, Plain, set_option};

/// Maximum number of messages that one call receives or sends.
pub(super) const MOST_MESSAGES: usize = 32;

/// The memory for one control message that contains a number, with the alignment of a control message.
type Control = [u64; 4];

// SAFETY: the structure has only integers and bytes.
unsafe impl Plain for sockaddr_storage {}
// SAFETY: the structure has only integers and pointers, for which zeros are values; only the calls below
// follow the pointers.
unsafe impl Plain for mmsghdr {}
// SAFETY: the structure has only an integer and a pointer.
unsafe impl Plain for iovec {}

/// A received message: a train, or a single datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    pub(super) from: Option<SocketAddr>,
    pub(super) bytes: usize,
    /// The size of the datagrams in the message; `None` if it is a single datagram.
    pub(super) datagram_bytes: Option<usize>,
}

impl Received {
    pub(super) const NOTHING: Self = Self { from: None, bytes: 0, datagram_bytes: None };
}

/// Requests kernel buffers of `bytes` bytes; without privilege, up to the system's limit.
pub(super) fn set_buffers(socket: BorrowedFd<'_>, bytes: u32) {
    let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    for (forced, asked) in
        [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
    {
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
    let mut controls: [Control; MOST_MESSAGES] = [[0; 4]; MOST_MESSAGES];
    let mut wanted = 0;
    for (n, memory) in memory.chunks_exact_mut(MESSAGE_BYTES).take(MOST_MESSAGES).enumerate() {
        pieces[n] = iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() };
        let header = &mut headers[n].msg_hdr;
        header.msg_name = (&raw mut names[n]).cast();
        header.msg_namelen = size_of::<sockaddr_storage>() as _;
        header.msg_iov = &raw mut pieces[n];
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut controls[n]).cast();
        header.msg_controllen = size_of::<Control>() as _;
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
            Some(libc::EAGAIN | libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH) => {
                return Ok(0);
            }
            _ => return Err(error),
        }
    };
    for (n, header) in headers[..count].iter().enumerate() {
        received[n] = Received {
            from: address(&names[n]),
            bytes: header.msg_len as usize,
            datagram_bytes: datagram_bytes(&header.msg_hdr),
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
    is_ipv6: bool,
    messages: &[Message<'_>],
) -> io::Result<usize> {
    let mut headers = [mmsghdr::zeroed(); MOST_MESSAGES];
    let mut pieces = [iovec::zeroed(); MOST_MESSAGES];
    let mut names = [sockaddr_storage::zeroed(); MOST_MESSAGES];
    let mut controls: [Control; MOST_MESSAGES] = [[0; 4]; MOST_MESSAGES];
    let count = messages.len().min(MOST_MESSAGES);
    for (n, message) in messages[..count].iter().enumerate() {
        let iov_base = message.bytes.as_ptr().cast_mut().cast();
        pieces[n] = iovec { iov_base, iov_len: message.bytes.len() };
        let header = &mut headers[n].msg_hdr;
        header.msg_namelen = set_address(&mut names[n], message.to, is_ipv6) as _;
        header.msg_name = (&raw mut names[n]).cast();
        header.msg_iov = &raw mut pieces[n];
        header.msg_iovlen = 1;
        if message.datagrams() > 1 {
            header.msg_control = (&raw mut controls[n]).cast();
            header.msg_controllen =
                set_datagram_bytes(&mut controls[n], message.datagram_bytes) as _;
        }
    }
    // SAFETY: each header points to live memory of the length that it states, which the kernel only reads.
    unsafe { sys::send_messages(socket, &mut headers[..count], libc::MSG_NOSIGNAL) }
}

/// Writes the control message that makes the message a train. Returns its length in bytes.
fn set_datagram_bytes(control: &mut Control, bytes: usize) -> usize {
    // SAFETY: the control is aligned for a header and has space for it and for a number after it.
    unsafe {
        let header: *mut libc::cmsghdr = (&raw mut *control).cast();
        (*header).cmsg_level = libc::SOL_UDP;
        (*header).cmsg_type = libc::UDP_SEGMENT;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as _) as _;
        libc::CMSG_DATA(header).cast::<u16>().write_unaligned(bytes as u16);
        libc::CMSG_SPACE(size_of::<u16>() as _) as usize
    }
}

/// Reads the size of the datagrams in a message from its control messages; `None` if the message is a single
/// datagram.
fn datagram_bytes(message: &libc::msghdr) -> Option<usize> {
    // SAFETY: the kernel has filled in the control messages, which the header still points to.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(found) = header.as_ref() {
            if found.cmsg_level == libc::SOL_UDP && found.cmsg_type == libc::UDP_GRO {
                let bytes = libc::CMSG_DATA(header).cast::<c_int>().read_unaligned();
                return usize::try_from(bytes).ok().filter(|bytes| *bytes > 0);
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    None
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
