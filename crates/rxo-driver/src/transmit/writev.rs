//! Writer that makes one `writev` call per packet, which every kernel supports.
#![allow(unsafe_code, reason = "writev takes pointers")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use super::batch::Sealed;
use super::{Writer, Written};

/// Writes packets to the descriptor of a TAP or TUN, which it shares with the source.
#[derive(Debug)]
pub(crate) struct Writev<F> {
    file: Arc<F>,
}

impl<F: AsFd> Writev<F> {
    pub(crate) const fn new(file: Arc<F>) -> Self {
        Self { file }
    }
}

impl<F: AsFd> Writer for Writev<F> {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        let fd = self.file.as_fd().as_raw_fd();
        for n in from..batch.list().len() {
            let pieces = batch.pieces(n);
            // SAFETY: the pieces are live while the batch is, and at most `MOST_PIECES`.
            let result = unsafe { libc::writev(fd, pieces.as_ptr(), pieces.len() as _) };
            if result < 0 {
                let (sent, submissions) = (n - from, (n - from + 1) as u64);
                let refused = Some(io::Error::last_os_error());
                return Written { sent, submissions, refused, ..Written::default() };
            }
        }
        let sent = batch.list().len() - from;
        Written { sent, submissions: sent as u64, ..Written::default() }
    }
}
