//! A packet socket that exchanges a `virtio_net_hdr` with the kernel for each packet, received or sent.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::{Interest, check, force_receive_buffer_bytes, set_buffer_bytes};

/// A socket that receives a copy of every packet that arrives at one interface, and sends packets out of that
/// interface. Each packet is preceded by a `virtio_net_hdr` of ten bytes.
#[derive(Debug)]
pub struct MonitorSocket(OwnedFd);

impl MonitorSocket {
    /// Opens a socket on the interface with this index, in the calling thread's namespace.
    pub fn open(index: u32) -> io::Result<Self> {
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: socket takes no pointers. Without a protocol nothing arrives before it is bound.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        check(fd)?;
        // SAFETY: the descriptor is new, and nothing else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        for option in OPTIONS {
            let on: libc::c_int = 1;
            let length = size_of::<libc::c_int>() as libc::socklen_t;
            // SAFETY: the kernel reads `length` bytes of `on`, which lives through the call.
            let set = unsafe {
                libc::setsockopt(fd, libc::SOL_PACKET, option, (&raw const on).cast(), length)
            };
            check(set)?;
        }
        // Setting the buffer by force needs privilege outside of a user namespace; inside, the machine's limit applies.
        force_receive_buffer_bytes(&socket, BUFFER_BYTES)
            .or_else(|_| set_buffer_bytes(&socket, Interest::Read, BUFFER_BYTES))?;
        // SAFETY: sockaddr_ll consists of bytes and integers, for which all zeros is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = index.cast_signed();
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel reads `length` bytes of `address`, which lives through the call.
        check(unsafe { libc::bind(fd, (&raw const address).cast(), length) })?;
        Ok(Self(socket))
    }

    /// Sends a packet, which is given in pieces. The first piece is the packet's `virtio_net_hdr`.
    pub fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        // SAFETY: an IoSlice is laid out as an iovec, and the kernel only reads the pieces.
        let sent = unsafe {
            libc::writev(self.0.as_raw_fd(), pieces.as_ptr().cast(), pieces.len() as libc::c_int)
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Receives the next packet. Returns its length, and the bytes of the VLAN tag that the kernel removed from
    /// the packet. `None` if no packet is queued. A packet that is longer than the buffer is truncated.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<[u8; 4]>)>> {
        let mut room = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut control = [0_u64; 16];
        // SAFETY: msghdr consists of pointers and integers, for which all zeros is valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut room;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: `message` names `buffer` and `control` with their lengths, and all live through the call.
        let got = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, 0) };
        match usize::try_from(got) {
            Ok(bytes) => Ok(Some((bytes, removed_tag(&message)))),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error if error.kind() == io::ErrorKind::Interrupted => Ok(None),
                error => Err(error),
            },
        }
    }
}

impl AsRawFd for MonitorSocket {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_raw_fd()
    }
}

/// Returns the VLAN tag that the kernel removed from a received `message`; `None` if the kernel removed no tag.
fn removed_tag(message: &libc::msghdr) -> Option<[u8; 4]> {
    // SAFETY: recvmsg has filled `message`, whose control buffer is that of the caller and still lives.
    let first = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    let whole = size_of::<libc::tpacket_auxdata>();
    if (first.cmsg_level, first.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA)
        || (first.cmsg_len as usize) < whole
    {
        return None;
    }
    // SAFETY: this message carries a tpacket_auxdata, and its length was checked.
    let known: libc::tpacket_auxdata =
        unsafe { libc::CMSG_DATA(first).cast::<libc::tpacket_auxdata>().read_unaligned() };
    if known.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let ([a, b], [c, d]) = (known.tp_vlan_tpid.to_be_bytes(), known.tp_vlan_tci.to_be_bytes());
    Some([a, b, c, d])
}

/// The options that the socket needs: a `virtio_net_hdr` before each packet, the VLAN tag with each packet,
/// and no copies of sent packets.
const OPTIONS: [libc::c_int; 3] =
    [libc::PACKET_VNET_HDR, libc::PACKET_AUXDATA, libc::PACKET_IGNORE_OUTGOING];

/// The size of the receive buffer, in bytes. The buffer holds the packets that arrive while the reader is busy.
const BUFFER_BYTES: usize = 8 << 20;
