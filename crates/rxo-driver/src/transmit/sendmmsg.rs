//! Writer for sockets: sends many packets in one system call.
#![allow(unsafe_code, reason = "sendmmsg takes pointers")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;

use libc::mmsghdr;

use super::batch::Sealed;
use super::full_queue::FullQueue;
use super::{Writer, Written};
use crate::sys;

/// Sends packets on a socket that is bound to an interface.
#[derive(Debug)]
pub(crate) struct SendMmsg {
    socket: OwnedFd,
    headers: Vec<mmsghdr>,
    full_queue: FullQueue,
}

// SAFETY: the headers have pointers only during a call of `send`.
unsafe impl Send for SendMmsg {}

impl SendMmsg {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket, headers: Vec::new(), full_queue: FullQueue::default() }
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends the packets that start at index `from`. Returns the number of packets sent.
    fn send(&mut self, batch: &Sealed<'_, '_>, from: usize) -> io::Result<usize> {
        self.headers.clear();
        self.headers.extend((from..batch.list().len()).map(|n| header(batch, n)));
        // SAFETY: every header points to pieces that are live while the batch is, and which the
        // kernel only reads.
        let sent = unsafe { sys::send_messages(self.socket.as_fd(), &mut self.headers, 0) };
        // The kernel reports an error only for the first packet of a call: a later one ends the
        // call early, and the next call begins with it and gets the error.
        self.headers.clear();
        sent
    }

    /// Returns `true` if a packet of `packet_bytes` bytes was refused because packets from this socket fill
    /// the interface's queue.
    fn fills_queue(&mut self, error: &io::Error, packet_bytes: usize) -> bool {
        is_no_buffers(error)
            && sys::unsent_bytes(self.socket())
                .is_ok_and(|queued| self.full_queue.may_pass_later(packet_bytes as u64, queued))
    }
}

impl Writer for SendMmsg {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        let mut submissions = 1;
        let sent = self.send(batch, from).or_else(|error| {
            if self.fills_queue(&error, batch.list()[from].bytes) {
                // Reported like a full socket, so that the packet is kept and retried.
                return Err(io::Error::from_raw_os_error(libc::EAGAIN));
            }
            if !is_no_buffers(&error) {
                return Err(error);
            }
            // The queue may have free space by now.
            submissions += 1;
            self.send(batch, from)
        });
        let (sent, refused) = match sent {
            Ok(sent) => (sent, None),
            Err(error) => (0, Some(error)),
        };
        if sent > 0 {
            self.full_queue.passed();
        }
        Written { sent, submissions, refused, ..Written::default() }
    }
}

fn is_no_buffers(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

fn header(batch: &Sealed<'_, '_>, n: usize) -> mmsghdr {
    let pieces = batch.pieces(n);
    // SAFETY: the structure has only integers and pointers, for which zeros are values.
    let mut header: mmsghdr = unsafe { std::mem::zeroed() };
    header.msg_hdr.msg_iov = ptr::from_ref(pieces).cast_mut().cast();
    header.msg_hdr.msg_iovlen = pieces.len() as _;
    header
}
