//! Notices: the kernel's reports about changes of the network configuration, by any program.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

use crate::message::{Notice, notices};

/// A netlink socket that receives notices about interfaces, addresses, routes and neighbours in the network
/// namespace of the thread that opened it.
#[derive(Debug)]
pub struct Notices {
    socket: OwnedFd,
}

/// The size of the buffer for received notices, in bytes. The kernel's largest notice is far smaller.
const BUFFER_BYTES: usize = 1 << 16;

/// The multicast groups that the socket joins, numbered as in `linux/rtnetlink.h`.
const GROUPS: [u32; 6] = [LINK, NEIGHBOUR, IPV4_ADDRESS, IPV4_ROUTE, IPV6_ADDRESS, IPV6_ROUTE];
const LINK: u32 = 1;
const NEIGHBOUR: u32 = 3;
const IPV4_ADDRESS: u32 = 5;
const IPV4_ROUTE: u32 = 7;
const IPV6_ADDRESS: u32 = 9;
const IPV6_ROUTE: u32 = 11;

impl Notices {
    /// Opens the socket. It receives a notice of every change that happens afterwards.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn open() -> io::Result<Self> {
        let (family, flags) =
            (AddressFamily::NETLINK, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
        let socket = socket_with(family, SocketType::RAW, flags, None)?;
        let groups = GROUPS.into_iter().fold(0, |bits, group| bits | 1 << (group - 1));
        bind(&socket, &SocketAddrNetlink::new(0, groups))?;
        Ok(Self { socket })
    }

    /// Returns the notices of one received datagram, oldest first, without blocking. Returns an empty list if
    /// no notice is waiting, and `None` if notices were lost because the caller read too slowly.
    ///
    /// # Errors
    /// If the system refuses to read.
    pub fn take(&self) -> io::Result<Option<Vec<Notice>>> {
        let mut datagram = vec![0; BUFFER_BYTES];
        match retry_on_intr(|| recv(&self.socket, &mut datagram, RecvFlags::DONTWAIT)) {
            Ok((_, bytes)) => {
                Ok(Some(notices(datagram.get(..bytes).unwrap_or_default()).collect()))
            }
            Err(Errno::AGAIN) => Ok(Some(Vec::new())),
            Err(Errno::NOBUFS) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Notices {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_change_there_is_nothing_to_take() {
        let notices = Notices::open().unwrap();
        // Other tests may cause changes in the meantime, but only a limited number.
        while notices.take().unwrap().is_none_or(|some| !some.is_empty()) {}
    }
}
