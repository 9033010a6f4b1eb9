//! Netlink: asking the kernel's networking, and changing it, one request and its answer at a time.
//!
//! It is written here because what an interface has is moved as the bytes that the kernel shows:
//! a library that reads them into types of its own gives back only what it knows. Contract: a
//! request is sent as a whole and its answer read to its end before the next; an answer that is
//! not whole is an error, never a part.

mod message;

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

pub(crate) use message::{Request, attribute, attributes, u32_at};

use message::{Answer, answers};

use crate::{sys, wait};

/// A netlink socket. It speaks of the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: Cell<u32>,
}

/// The kernel makes no datagram of a dump larger than this.
const BUFFER_BYTES: usize = 1 << 16;

/// A dump is taken again so often when something changed meanwhile.
const ATTEMPTS: usize = 8;

/// The kernel answers at once; this only keeps a fault of ours from lasting for ever.
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

    /// Makes a change and waits until it is made.
    pub(crate) fn change(&self, request: &Request) -> io::Result<()> {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        self.exchange(&[request], flags).map(|_| ())
    }

    /// Makes several changes of a packet filter at once, or none. The requests must be such as the
    /// kernel wants them: between the two that begin and end a batch.
    pub(crate) fn change_together(&self, requests: &[&Request]) -> io::Result<()> {
        self.exchange(requests, libc::NLM_F_REQUEST as u16).map(|_| ())
    }

    /// Asks for all objects of a kind; each answer is what follows its netlink header.
    pub(crate) fn dump(&self, request: &Request) -> io::Result<Vec<Vec<u8>>> {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        for _ in 0..ATTEMPTS {
            if let Some(answers) = self.exchange(&[request], flags)? {
                return Ok(answers);
            }
        }
        Err(io::Error::other("the kernel's tables change too fast to be read"))
    }

    /// Sends, and reads up to the acknowledgement of the last, or the end of the dump. `None` when
    /// a dump was overtaken by a change.
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
                    // Of a request before this one, or of one in the middle of several.
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
