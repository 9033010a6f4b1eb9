//! Netlink: reads and changes the kernel's network configuration, one request and its answer at a time.
//!
//! Written here because the handover moves objects as the bytes of a dump: a library with types of its
//! own would lose every attribute that it does not know. Contract: a request is sent whole, and its
//! answer is read to the end before the next request; an incomplete answer is an error.

mod message;

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

pub(crate) use message::{Request, attribute, attributes, nested, u32_at};

use message::{Answer, answers};

use crate::{sys, wait};

/// A netlink socket, bound to the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: Cell<u32>,
}

/// The kernel's largest datagram of a dump, in bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// How often a dump is repeated if a change interrupted it.
const ATTEMPTS: usize = 8;

/// How long to wait for an answer. The kernel answers at once; this bounds a mistake of ours.
const PATIENCE: Duration = Duration::from_secs(5);

impl Netlink {
    /// Opens a socket for interfaces, addresses and routes.
    pub(crate) fn route() -> io::Result<Self> {
        Self::open(libc::NETLINK_ROUTE)
    }

    /// Opens a socket for packet filters.
    pub(crate) fn netfilter() -> io::Result<Self> {
        Self::open(libc::NETLINK_NETFILTER)
    }

    fn open(protocol: libc::c_int) -> io::Result<Self> {
        let socket = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol)?;
        Ok(Self { socket, sequence: Cell::new(1) })
    }

    /// Sends one change and waits for the kernel's acknowledgement.
    pub(crate) fn change(&self, request: &Request) -> io::Result<()> {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        self.exchange(&[request], flags).map(|_| ())
    }

    /// Makes all changes of a packet filter, or none. The requests must include those that begin and end
    /// a batch.
    pub(crate) fn change_together(&self, requests: &[&Request]) -> io::Result<()> {
        self.exchange(requests, libc::NLM_F_REQUEST as u16).map(|_| ())
    }

    /// Dumps all objects of a kind, each without its netlink header.
    pub(crate) fn dump(&self, request: &Request) -> io::Result<Vec<Vec<u8>>> {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        for _ in 0..ATTEMPTS {
            if let Some(answers) = self.exchange(&[request], flags)? {
                return Ok(answers);
            }
        }
        Err(io::Error::other("the kernel's tables change too fast to be read"))
    }

    /// Sends requests and reads until the last is acknowledged or the dump ends. `None` if a change
    /// interrupted the dump.
    fn exchange(&self, requests: &[&Request], flags: u16) -> io::Result<Option<Vec<Vec<u8>>>> {
        let mut bytes = Vec::new();
        let (first, mut last) = (self.sequence.get(), 0);
        for request in requests {
            let sequence = self.sequence.replace(self.sequence.get().wrapping_add(1));
            if request.is_answered(flags) {
                last = sequence;
            }
            request.write(&mut bytes, flags, sequence);
        }
        sys::send(self.socket.as_fd(), &bytes)?;
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
                    // The acknowledgement of an earlier request.
                    Answer::Done(_) | Answer::Refused(..) => {}
                }
            }
        }
    }

    fn receive(&self, datagram: &mut [u8]) -> io::Result<usize> {
        loop {
            match sys::receive(self.socket.as_fd(), datagram) {
                Ok(bytes) if bytes > datagram.len() => {
                    return Err(io::Error::other("an answer of the kernel was cut short"));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let ready = wait::wait_readable(&[self.socket.as_fd()], Some(PATIENCE))?;
                    if ready.is_none() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                other => return other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let nowhere = Request::new(libc::RTM_GETLINK, &[0; 16]).string(libc::IFLA_IFNAME, "rxo-no");
        let error = netlink.change(&nowhere).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
