//! Netlink socket: sends requests, and reads messages until the last request is answered.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
    socket_with,
};

use crate::message::{Answer, Request, answers};

/// A netlink socket. It acts on the network namespace of the thread that opened it, even if another thread
/// uses it. While one thread waits for an answer, another thread that uses the socket blocks.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    /// The sequence number of the next request. Locked until the answer is read, so that no thread reads the
    /// answer to another thread's request.
    sequence: Mutex<u32>,
}

/// The size of the receive buffer, in bytes: the kernel's largest datagram of a dump.
const BUFFER_BYTES: usize = 1 << 16;

/// Maximum number of attempts to read a dump. An attempt fails if a change interrupts the dump.
const ATTEMPTS: usize = 8;

/// Maximum time to wait for an answer. The kernel answers at once; the limit bounds the effect of a bug in
/// this module.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

impl Netlink {
    /// Opens a socket for interfaces, addresses, routes, neighbours and queueing disciplines.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn route() -> io::Result<Self> {
        // No protocol is given, because NETLINK_ROUTE is zero.
        Self::open(None)
    }

    /// Opens a socket for netfilter, which includes nftables.
    ///
    /// # Errors
    /// If the kernel has no netfilter, or the system has no descriptors left.
    pub fn netfilter() -> io::Result<Self> {
        Self::open(Some(netlink::NETFILTER))
    }

    /// Opens a socket that can list the system's sockets (sock_diag).
    ///
    /// # Errors
    /// If the kernel has no sock_diag, or the system has no descriptors left.
    pub fn sockets() -> io::Result<Self> {
        Self::open(Some(netlink::SOCK_DIAG))
    }

    fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        let socket = socket_with(family, SocketType::RAW, flags, protocol)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_TIMEOUT))?;
        Ok(Self { socket, sequence: Mutex::new(1) })
    }

    /// Sends one change and waits for the kernel's acknowledgement.
    ///
    /// # Errors
    /// If the kernel refuses the change, or its answer is incomplete.
    pub fn change(&self, request: &Request) -> io::Result<()> {
        self.ask(request).map(drop)
    }

    /// Requests an object, such as the interface with a certain name. Returns the objects in the answer, each
    /// without its netlink header.
    ///
    /// # Errors
    /// If the kernel refuses the request, for example because there is no such object, or if its answer is
    /// incomplete.
    pub fn ask(&self, request: &Request) -> io::Result<Vec<Vec<u8>>> {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        self.exchange(&[request], flags).map(Option::unwrap_or_default)
    }

    /// Makes all changes of a netfilter batch, or none. `requests` must include the messages that begin and end
    /// the batch, and each change must have the flag `NLM_F_ACK`.
    ///
    /// # Errors
    /// If the kernel refuses one of the changes, or its answer is incomplete.
    pub fn change_together(&self, requests: &[&Request]) -> io::Result<()> {
        self.exchange(requests, libc::NLM_F_REQUEST as u16).map(|_| ())
    }

    /// Lists all objects of a kind, each without its netlink header. If a change interrupts the dump, repeats
    /// it, up to eight attempts in total.
    ///
    /// # Errors
    /// If the kernel refuses the request, if its answer is incomplete, or if changes interrupt every attempt.
    pub fn dump(&self, request: &Request) -> io::Result<Vec<Vec<u8>>> {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        for _ in 0..ATTEMPTS {
            if let Some(answers) = self.exchange(&[request], flags)? {
                return Ok(answers);
            }
        }
        Err(io::Error::other("the kernel's tables change too fast to be read"))
    }

    /// Sends requests, and returns the objects in the answers, up to the acknowledgement of the last request or
    /// the end of the dump. `None` if a change of the kernel's tables interrupted the dump.
    fn exchange(&self, requests: &[&Request], flags: u16) -> io::Result<Option<Vec<Vec<u8>>>> {
        // A panic in another thread cannot have left half a request, because requests are sent as a whole.
        let mut next = self.sequence.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = Vec::new();
        let (first, mut last) = (*next, 0);
        for request in requests {
            if request.is_answered(flags) {
                last = *next;
            }
            request.write(&mut bytes, flags, *next);
            *next = next.wrapping_add(1);
        }
        send(&self.socket, &bytes, SendFlags::empty())?;
        let (mut found, mut is_whole) = (Vec::new(), true);
        let mut datagram = vec![0; BUFFER_BYTES];
        loop {
            let received = self.receive(&mut datagram)?;
            for answer in answers(&datagram[..received]) {
                match answer? {
                    Answer::Object(object) => found.push(object.to_vec()),
                    Answer::Overtaken => is_whole = false,
                    Answer::Done(sequence) if sequence == last => {
                        return Ok(is_whole.then_some(found));
                    }
                    Answer::Refused(sequence, error) if sequence >= first => return Err(error),
                    // An acknowledgement of an earlier request.
                    Answer::Done(_) | Answer::Refused(..) => {}
                }
            }
        }
    }

    fn receive(&self, datagram: &mut [u8]) -> io::Result<usize> {
        // With the flag TRUNC the system returns the length of the whole datagram, even if it was truncated.
        match retry_on_intr(|| recv(&self.socket, &mut *datagram, RecvFlags::TRUNC)) {
            Ok((_, bytes)) if bytes > datagram.len() => {
                Err(io::Error::other("an answer of the kernel was cut short"))
            }
            Ok((_, bytes)) => Ok(bytes),
            Err(Errno::AGAIN) => Err(io::ErrorKind::TimedOut.into()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;
    use crate::attribute;

    #[test]
    fn loopback_is_among_the_interfaces() {
        let netlink = Netlink::route().unwrap();
        let links = netlink.dump(&Request::new(libc::RTM_GETLINK, &[0; 16])).unwrap();
        let name = libc::IFLA_IFNAME;
        let is_loopback = |link: &Vec<u8>| attribute(&link[16..], name) == Some(b"lo\0".as_slice());
        assert!(links.iter().any(is_loopback));
    }

    #[test]
    fn what_the_kernel_refuses_is_its_error() {
        let netlink = Netlink::route().unwrap();
        let error = netlink.change(&link("rxo-no")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn threads_that_share_a_socket_get_their_own_answers() {
        let netlink = Netlink::route().unwrap();
        let start = Barrier::new(4);
        let count = |name| netlink.ask(&link(name)).map(|links| links.len()).ok();
        let asks = |name, expected| {
            start.wait();
            (0..1_000).for_each(|_| assert_eq!(count(name), expected, "{name}"));
        };
        thread::scope(|scope| {
            for (name, expected) in [("lo", Some(1)), ("rxo-no", None)].repeat(2) {
                let asks = &asks;
                scope.spawn(move || asks(name, expected));
            }
        });
    }

    fn link(name: &str) -> Request {
        Request::new(libc::RTM_GETLINK, &[0; 16]).string(libc::IFLA_IFNAME, name)
    }
}
