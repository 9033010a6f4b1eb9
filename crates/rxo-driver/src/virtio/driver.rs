//! Driver: the rings of the driver's side, and their buffers.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rxo_frame::PoolBuf;
use rxo_virtqueue::{
    ConfigError, DriverQueue, InvalidUsed, Memory, Region, RegionError, Segment, Used,
};
use rxo_vnet::{BUFFER_COUNT_AT, VIRTIO_HEADER_BYTES};

use super::layout::{LARGE_BYTES, Places, SEND_BUFFERS, START};
use crate::virtio_net::mapping::{self, Holes};
use crate::virtio_net::{Buffers, PacketRing, RingRead};

/// The driver's rings, over memory that the back end shares.
#[derive(Debug)]
pub(super) struct Driver {
    memory: Memory,
    places: Places,
    /// The receive rings, one for each pair of queues.
    receive: Vec<DriverQueue>,
    /// The index of the receive ring from which the next frame is taken first.
    next: usize,
    /// The transmit ring of the first pair of queues. The transmit rings of other pairs stay empty.
    send: DriverQueue,
    /// The numbers of the free send buffers. The buffer that was freed last is used first, because its memory
    /// is still in the cache.
    free: Vec<u32>,
    /// A frame in several buffers of the ring `next`, of which only some have arrived; `None` if there is
    /// none.
    partial: Option<Partial>,
}

#[derive(Debug)]
struct Partial {
    buffer: PoolBuf,
    bytes: usize,
    /// The number of buffers of the frame that have not arrived.
    later: u16,
    /// `true` if the frame is too long or invalid, so that it is discarded once its last buffer has arrived.
    is_bad: bool,
}

impl Driver {
    /// Creates rings over the memory of the empty file `file`, and posts all receive buffers.
    pub(super) fn new(file: BorrowedFd<'_>, places: Places) -> io::Result<Self> {
        // The file is our own, and sealed.
        let (mapping, _) = mapping::map(file, 0..places.bytes, Holes::Filled)?;
        let mapping = Arc::new(mapping);
        let region = Region::new(START, START, mapping, 0, places.bytes);
        let mut memory = Memory::new();
        region.and_then(|region| memory.add(region)).map_err(|error: RegionError| other(&error))?;
        let queue = |n: usize| {
            DriverQueue::new(&memory, &places.rings[n], None)
                .map_err(|error: ConfigError| other(&error))
        };
        let mut receive =
            (0..places.rings.len()).step_by(2).map(queue).collect::<io::Result<Vec<_>>>()?;
        let mut numbers = 0..;
        for ring in &mut receive {
            for n in numbers.by_ref().take(places.receive_buffers as usize) {
                let (address, bytes) = (places.receive(n), places.receive_bytes);
                // The ring has a descriptor for each of its buffers, so posting cannot fail.
                let _posted = ring.post(&[Segment { address, bytes, is_writable: true }], n);
            }
            ring.publish();
        }
        let mut send = queue(1)?;
        send.disable_notifications();
        let free = (0..SEND_BUFFERS).rev().collect();
        Ok(Self { memory, places, receive, next: 0, send, free, partial: None })
    }

    /// Copies the next frame into the next one of `buffers`. Its ring buffers are posted
    /// again; the back end sees them after [`Driver::finish_taking`].
    #[inline]
    pub(super) fn take(&mut self, buffers: &mut Buffers) -> RingRead {
        if self.partial.is_some() {
            return self.complete(buffers);
        }
        let Some(buffer) = buffers.room() else { return RingRead::Nothing };
        for _ in 0..self.receive.len() {
            match self.receive[self.next].recycle() {
                Ok(Some(used)) => {
                    let bytes = used.written_bytes as usize;
                    return match self.read_first(used, buffer) {
                        // Some devices that do not merge buffers write zero.
                        Some(0 | 1) => RingRead::Frame(bytes),
                        Some(count) => {
                            let buffer = buffers.take();
                            self.partial =
                                Some(Partial { buffer, bytes, later: count - 1, is_bad: false });
                            self.complete(buffers)
                        }
                        None => RingRead::Discarded,
                    };
                }
                Err(InvalidUsed::TooLong { .. }) => return RingRead::Discarded,
                Ok(None) | Err(_) => self.next = (self.next + 1) % self.receive.len(),
            }
        }
        RingRead::Nothing
    }

    /// Copies the first ring buffer of a frame. Returns the frame's number of buffers, which its header contains, and
    /// which is nearly always one; `None` if the ring buffer is too long, or too short for a header.
    #[inline]
    fn read_first(&self, used: Used, buffer: &mut [u8]) -> Option<u16> {
        let to = buffer.get_mut(..used.written_bytes as usize)?;
        let address = self.places.receive(used.token);
        let count =
            self.memory.read(address, to).then(|| to.get(BUFFER_COUNT_AT..)?.first_chunk())?;
        count.map(|count| u16::from_le_bytes(*count))
    }

    /// Appends the remaining buffers of the partial frame. If some of them have not arrived, the frame stays
    /// partial.
    #[cold]
    fn complete(&mut self, buffers: &mut Buffers) -> RingRead {
        let Some(mut partial) = self.partial.take() else { return RingRead::Nothing };
        while partial.later > 0 {
            match self.receive[self.next].recycle() {
                Ok(Some(used)) => self.append(&mut partial, used),
                Ok(None) => {
                    // A correct back end publishes all buffers of a frame at once; this one has published
                    // only some so far.
                    self.partial = Some(partial);
                    return RingRead::Nothing;
                }
                Err(InvalidUsed::TooLong { .. }) => return RingRead::Discarded,
                Err(_) => return RingRead::Nothing,
            }
        }
        buffers.put_back(partial.buffer);
        if partial.is_bad { RingRead::Discarded } else { RingRead::Frame(partial.bytes) }
    }

    fn append(&mut self, partial: &mut Partial, used: Used) {
        let Partial { buffer, bytes, later, is_bad } = partial;
        let end = *bytes + used.written_bytes as usize;
        let is_read = self.read(used, buffer.get_mut(*bytes..end));
        *is_bad |= !is_read;
        *later -= 1;
        *bytes = if is_read { end } else { *bytes };
    }

    /// Copies a ring buffer to `to`. Returns `false` if the content does not fit.
    #[inline]
    fn read(&self, used: Used, to: Option<&mut [u8]>) -> bool {
        let address = self.places.receive(used.token);
        to.is_some_and(|to| self.memory.read(address, to))
    }

    /// Requests notifications from the back end. Returns `true` if a frame, or its first part, has already
    /// arrived.
    pub(super) fn ask_for_notifications(&mut self) -> bool {
        let ask = |is_any, ring: &mut DriverQueue| ring.enable_notifications() | is_any;
        self.receive.iter_mut().fold(false, ask)
    }

    /// Publishes the receive buffers that were posted again. Calls `notify` with each pair for whose receive
    /// ring the back end wants a notification.
    pub(super) fn finish_taking(&mut self, mut notify: impl FnMut(usize)) {
        for (pair, ring) in self.receive.iter_mut().enumerate() {
            ring.publish();
            if ring.needs_notify() {
                notify(pair);
            }
        }
    }

    /// Publishes the packets that were written. Returns `true` if the back end must be notified.
    pub(super) fn finish_putting(&mut self) -> bool {
        self.send.publish();
        self.send.needs_notify()
    }

    /// Returns the number of times that the back end has violated the rules of the rings.
    pub(super) fn invalid(&self) -> u64 {
        self.receive.iter().map(DriverQueue::invalid).sum::<u64>() + self.send.invalid()
    }

    /// Returns `true` if a ring cannot be used any more.
    pub(super) fn is_broken(&self) -> bool {
        self.receive.iter().any(DriverQueue::is_broken) || self.send.is_broken()
    }

    /// Returns the number of sent packets that the back end has not yet read.
    pub(super) fn unread(&mut self) -> u32 {
        self.reclaim();
        SEND_BUFFERS - self.free.len() as u32
    }

    /// Reclaims the buffers of packets that the back end has read.
    fn reclaim(&mut self) {
        loop {
            match self.send.take_used() {
                Ok(Some(used)) => self.free.push(used.token),
                Err(InvalidUsed::TooLong { token, .. }) => self.free.push(token),
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Returns the number of a free send buffer. If there is none, returns `None` and asks the back end to
    /// notify when it has read a buffer.
    fn free(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            self.reclaim();
        }
        if self.free.is_empty() && self.send.enable_notifications() {
            self.reclaim();
        }
        let n = self.free.pop()?;
        self.send.disable_notifications();
        Some(n)
    }
}

impl PacketRing for Driver {
    fn put<'p>(
        &mut self,
        header: [u8; VIRTIO_HEADER_BYTES],
        bytes: usize,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) -> io::Result<()> {
        let errno = |code| Err(io::Error::from_raw_os_error(code));
        if bytes + VIRTIO_HEADER_BYTES > LARGE_BYTES as usize {
            return errno(libc::EMSGSIZE);
        }
        let Some(n) = self.free() else { return errno(libc::EAGAIN) };
        let address = self.places.send(n);
        let mut is_written = self.memory.write(address, &header);
        let mut end = address + header.len() as u64;
        for piece in pieces {
            is_written &= self.memory.write(end, piece);
            end += piece.len() as u64;
        }
        let segment = Segment { address, bytes: (end - address) as u32, is_writable: false };
        if !is_written || self.send.post(&[segment], n).is_err() {
            self.free.push(n);
            return errno(libc::EMSGSIZE);
        }
        Ok(())
    }
}

fn other(error: &impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}
