//! Sender: the sending half of a socket: writes frames into chunks, and makes the kernel send them.
//!
//! Contract: a chunk is written only while the kernel does not own it. A frame is in the ring as a whole or
//! not at all.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rxo_vnet::VIRTIO_HEADER_BYTES;

use super::chunks::Outgoing;
use super::ring::{Consumer, Producer};
use crate::sys;
use crate::virtio_net::PacketRing;

/// The sending half of one socket.
#[derive(Debug)]
pub(super) struct Sender {
    file: Arc<OwnedFd>,
    outgoing: Outgoing,
    send: Producer<2>,
    completed: Consumer<1>,
    /// The maximum length of a frame that the interface sends, in bytes.
    most_bytes: usize,
    /// The maximum number of chunks in a frame.
    most_pieces: usize,
    /// `true` if the kernel has stopped before it sent all frames in the ring. It continues only after another
    /// [`kick`](Self::kick).
    is_stuck: bool,
    /// The number of frames that the interface dropped because its queue was full.
    dropped: u64,
}

impl Sender {
    pub(super) fn new(
        file: Arc<OwnedFd>,
        outgoing: Outgoing,
        (send, completed): (Producer<2>, Consumer<1>),
        (most_bytes, has_pieces): (usize, bool),
    ) -> Self {
        let most_pieces = if has_pieces { MOST_PIECES } else { 1 };
        let (is_stuck, dropped) = (false, 0);
        Self { file, outgoing, send, completed, most_bytes, most_pieces, is_stuck, dropped }
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns `true` if the kernel needs another [`kick`](Self::kick) to continue.
    pub(super) const fn is_stuck(&self) -> bool {
        self.is_stuck
    }

    /// Returns the number of frames that the interface dropped since the last call.
    pub(super) const fn take_dropped(&mut self) -> u64 {
        std::mem::replace(&mut self.dropped, 0)
    }

    /// Sets the length of the longest frame that the interface sends, in bytes. Returns `true` if the length
    /// increases.
    pub(super) const fn allow(&mut self, most_bytes: usize) -> bool {
        let grows = most_bytes > self.most_bytes;
        self.most_bytes = most_bytes;
        grows
    }

    /// Publishes the written frames, and calls the kernel to send until it has accepted all frames or accepts
    /// no more. Returns the number of system calls.
    ///
    /// # Errors
    /// If the interface is down or gone. The frames stay in the ring.
    pub(super) fn kick(&mut self) -> io::Result<u64> {
        self.send.publish();
        self.is_stuck = false;
        let mut calls = 0;
        loop {
            let unread = self.send.unread();
            if unread == 0 || !self.send.ring().needs_wakeup() {
                return Ok(calls);
            }
            calls += 1;
            let Err(error) = sys::kick(self.file.as_fd()) else {
                // A driver in zero-copy mode continues by itself.
                if self.send.unread() == unread {
                    return Ok(calls);
                }
                continue;
            };
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // The interface dropped one frame; the others are still in the ring.
                Some(libc::EBUSY) => self.dropped += 1,
                // The kernel sends some frames per call, and limits the number of frames in transit.
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => {
                    self.reap();
                    if self.send.unread() == unread {
                        self.is_stuck = true;
                        return Ok(calls);
                    }
                }
                _ => return Err(error),
            }
        }
    }

    /// Takes back the chunks whose frames the kernel has sent.
    fn reap(&mut self) {
        while let Some([address]) = self.completed.pop() {
            self.outgoing.put(address);
        }
        self.completed.release();
    }

    /// Returns `true` if there are free chunks and ring slots for `pieces` pieces.
    fn has_room(&mut self, pieces: usize) -> bool {
        if self.outgoing.free() < pieces {
            self.reap();
        }
        self.outgoing.free() >= pieces && self.send.has_room(pieces as u32)
    }
}

impl PacketRing for Sender {
    fn put<'p>(
        &mut self,
        _: [u8; VIRTIO_HEADER_BYTES],
        bytes: usize,
        slices: impl Iterator<Item = &'p [u8]>,
    ) -> io::Result<()> {
        let errno = |code| Err(io::Error::from_raw_os_error(code));
        let chunk_bytes = self.outgoing.chunk_bytes();
        let pieces = bytes.div_ceil(chunk_bytes).max(1);
        if bytes > self.most_bytes || pieces > self.most_pieces {
            return errno(libc::EMSGSIZE);
        }
        if !self.has_room(pieces) {
            return errno(libc::EAGAIN);
        }
        let Some(mut chunk) = self.outgoing.take() else { return errno(libc::EAGAIN) };
        let mut at = 0;
        for mut slice in slices {
            while !slice.is_empty() {
                if at == chunk_bytes {
                    self.send.push(entry(self.outgoing.address(chunk), at, libc::XDP_PKT_CONTD));
                    let Some(next) = self.outgoing.take() else { return errno(libc::EAGAIN) };
                    (chunk, at) = (next, 0);
                }
                let (now, later) = slice.split_at(slice.len().min(chunk_bytes - at));
                self.outgoing.write(chunk, at, now);
                (slice, at) = (later, at + now.len());
            }
        }
        self.send.push(entry(self.outgoing.address(chunk), at, 0));
        Ok(())
    }
}

/// Returns the ring entry of a piece: its address, its length in bytes, and its options.
fn entry(address: u64, len: usize, options: u32) -> [u64; 2] {
    let [a, b, c, d] = (len as u32).to_ne_bytes();
    let [e, f, g, h] = options.to_ne_bytes();
    [address, u64::from_ne_bytes([a, b, c, d, e, f, g, h])]
}

/// The maximum number of pieces of a frame that every kernel sends (`MAX_SKB_FRAGS` is at least 17).
const MOST_PIECES: usize = 17;

#[cfg(test)]
mod tests;
