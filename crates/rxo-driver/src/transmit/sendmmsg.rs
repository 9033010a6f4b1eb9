//! Many packets in one system call, on a socket.
#![allow(unsafe_code, reason = "sendmmsg takes pointers")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use libc::mmsghdr;

use super::batch::Sealed;
use super::{Writer, Written};

/// Sends on a socket that is bound to an interface.
#[derive(Debug)]
pub(crate) struct SendMmsg {
    socket: OwnedFd,
    headers: Vec<mmsghdr>,
}

impl SendMmsg {
    pub(crate) const fn new(socket: OwnedFd) -> Self {
        Self { socket, headers: Vec::new() }
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Writer for SendMmsg {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        let count = batch.list().len() - from;
        self.headers.clear();
        self.headers.extend((from..batch.list().len()).map(|n| header(batch, n)));
        // SAFETY: every header points to pieces that are live while the batch is, and which the
        // kernel only reads.
        let result = unsafe {
            let fd = self.socket.as_raw_fd();
            libc::sendmmsg(fd, self.headers.as_mut_ptr(), count as _, libc::MSG_DONTWAIT)
        };
        // The kernel reports an error only for the first packet of a call: a later one ends the
        // call early, and the next call begins with it and gets the error.
        let refused = (result < 0).then(io::Error::last_os_error);
        self.headers.clear();
        let sent = usize::try_from(result).unwrap_or(0);
        Written { sent, submissions: 1, refused, ..Written::default() }
    }
}

fn header(batch: &Sealed<'_, '_>, n: usize) -> mmsghdr {
    let pieces = batch.pieces(n);
    // SAFETY: integers and pointers, for which zeros are values.
    let mut header: mmsghdr = unsafe { std::mem::zeroed() };
    header.msg_hdr.msg_iov = ptr::from_ref(pieces).cast_mut().cast();
    header.msg_hdr.msg_iovlen = pieces.len() as _;
    header
}
