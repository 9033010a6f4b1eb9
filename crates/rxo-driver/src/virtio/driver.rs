//! The rings of the driver, and their buffers.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rxo_frame::PoolBuf;
use rxo_virtqueue::{
    ConfigError, DriverQueue, InvalidUsed, Memory, Region, RegionError, Segment, Used,
};
use rxo_vnet::{BUFFER_COUNT_AT, VIRTIO_HEADER_BYTES};

use super::layout::{LARGE_BYTES, Places, SEND_BUFFERS, START};
use crate::virtio_net::{Buffers, Given, PacketRing, mapping};

/// The rings over their memory.
#[derive(Debug)]
pub(super) struct Driver {
    memory: Memory,
    places: Places,
    /// The receive ring of each pair.
    receive: Vec<DriverQueue>,
    /// The receive ring that is asked first.
    next: usize,
    /// The transmit ring of the first pair. Those of others stay empty.
    send: DriverQueue,
    /// Numbers of the buffers that nothing is sent from, the last used on top: it is in the cache.
    free: Vec<u32>,
    /// A frame that fills several buffers of the ring that is asked first. Some of them have come.
    partial: Option<Partial>,
}

#[derive(Debug)]
struct Partial {
    buffer: PoolBuf,
    bytes: usize,
    /// How many buffers are still to come.
    buffers: u16,
    /// Whether it does not fit, so that it is discarded when the last buffer has come.
    is_bad: bool,
}

impl Driver {
    /// Rings over new memory, which `file` has, with all receive buffers posted.
    pub(super) fn new(file: BorrowedFd<'_>, places: Places) -> io::Result<Self> {
        // The file is our own, and sealed.
        let (mapping, _) = mapping::map(file, places.bytes)?;
        let mapping = Arc::new(mapping);
        let region = Region::new(START, START, mapping, 0, places.bytes);
        let mut memory = Memory::new();
        region.and_then(|region| memory.add(region)).map_err(|error: RegionError| other(&error))?;
        let queue = |n: usize| {
            DriverQueue::new(&memory, &places.rings[n], None)
                .map_err(|error: ConfigError| other(&error))
        };
        let receive =
            (0..places.rings.len()).step_by(2).map(queue).collect::<io::Result<Vec<_>>>()?;
        let send = queue(1)?;
        let free = (0..SEND_BUFFERS).rev().collect();
        let buffers = places.receive_buffers * receive.len() as u32;
        let mut this = Self { memory, places, receive, next: 0, send, free, partial: None };
        (0..buffers).for_each(|n| this.post(n));
        this.receive.iter_mut().for_each(DriverQueue::publish);
        this.send.disable_notifications();
        Ok(this)
    }

    /// The next frame, copied into one of `buffers`. A buffer of the ring is posted again as soon as it was copied.
    #[inline]
    pub(super) fn take(&mut self, buffers: &mut Buffers) -> Given {
        for _ in 0..self.receive.len() {
            match self.take_from_next(buffers) {
                Given::Nothing if self.partial.is_none() => {
                    self.next = (self.next + 1) % self.receive.len();
                }
                given => return given,
            }
        }
        Given::Nothing
    }

    #[inline]
    fn take_from_next(&mut self, buffers: &mut Buffers) -> Given {
        if let Some(partial) = self.partial.take() {
            return self.complete(partial);
        }
        let Some(buffer) = buffers.take() else { return Given::Nothing };
        match self.receive[self.next].take_used() {
            Ok(Some(used)) => self.begin(buffer, used),
            unused => {
                buffers.put_back(buffer);
                self.pass_over(unused)
            }
        }
    }

    /// The frame that begins with the buffer `used` of the ring, which says how many there are. Nearly always it is one.
    #[inline]
    fn begin(&mut self, mut buffer: PoolBuf, used: Used) -> Given {
        let bytes = used.written_bytes as usize;
        let is_read = self.read(used, buffer.get_mut(..bytes));
        let count = match is_read.then(|| buffer.get(BUFFER_COUNT_AT..bytes)).flatten() {
            Some([low, high, ..]) => u16::from_le_bytes([*low, *high]),
            _ => 0,
        };
        let is_bad = !is_read || bytes < VIRTIO_HEADER_BYTES;
        // Some devices that do not merge say zero.
        let buffers = if is_bad { 0 } else { count.saturating_sub(1) };
        if is_bad || buffers > 0 {
            return self.complete(Partial { buffer, bytes, buffers, is_bad });
        }
        buffer.truncate(bytes);
        Given::Frame(buffer)
    }

    /// Adds the buffers of the ring that are still to come.
    #[cold]
    fn complete(&mut self, mut partial: Partial) -> Given {
        while partial.buffers > 0 {
            match self.receive[self.next].take_used() {
                Ok(Some(used)) => self.append(&mut partial, used),
                Ok(None) => {
                    // A whole frame is visible at once, so this is a back end that is not done.
                    self.partial = Some(partial);
                    return Given::Nothing;
                }
                unused => return self.pass_over(unused),
            }
        }
        let Partial { mut buffer, bytes, is_bad, .. } = partial;
        buffer.truncate(bytes);
        if is_bad { Given::Discarded } else { Given::Frame(buffer) }
    }

    fn append(&mut self, partial: &mut Partial, used: Used) {
        let Partial { buffer, bytes, buffers, is_bad } = partial;
        let end = *bytes + used.written_bytes as usize;
        let is_read = self.read(used, buffer.get_mut(*bytes..end));
        *is_bad |= !is_read;
        *buffers -= 1;
        *bytes = if is_read { end } else { *bytes };
    }

    /// Copies a buffer of the ring to `to`, and posts it again. Returns `false` if there is no room for it.
    #[inline]
    fn read(&mut self, used: Used, to: Option<&mut [u8]>) -> bool {
        let address = self.places.receive(used.token);
        let is_read = to.is_some_and(|to| self.memory.read(address, to));
        self.post(used.token);
        is_read
    }

    /// What a ring gives that has no buffer, or one with more than there is room for.
    fn pass_over(&mut self, unused: Result<Option<Used>, InvalidUsed>) -> Given {
        match unused {
            Err(InvalidUsed::TooLong { token, .. }) => {
                self.post(token);
                Given::Discarded
            }
            _ => Given::Nothing,
        }
    }

    /// Whether a frame is there, or its first part. The back end then notifies of the next buffers.
    pub(super) fn ask_for_notifications(&mut self) -> bool {
        let ask = |is_any, ring: &mut DriverQueue| ring.enable_notifications() | is_any;
        self.receive.iter_mut().fold(false, ask)
    }

    /// Shows the back end the buffers that were posted again. Calls `notify` with each pair whose receive
    /// ring the back end is to be notified of.
    pub(super) fn finish_taking(&mut self, mut notify: impl FnMut(usize)) {
        for (pair, ring) in self.receive.iter_mut().enumerate() {
            ring.publish();
            if ring.needs_notify() {
                notify(pair);
            }
        }
    }

    /// Shows the back end the packets that were put. Returns whether to notify it.
    pub(super) fn finish_putting(&mut self) -> bool {
        self.send.publish();
        self.send.needs_notify()
    }

    /// How often the back end broke a rule.
    pub(super) fn invalid(&self) -> u64 {
        self.receive.iter().map(DriverQueue::invalid).sum::<u64>() + self.send.invalid()
    }

    /// Whether a ring cannot be used any more.
    pub(super) fn is_broken(&self) -> bool {
        self.receive.iter().any(DriverQueue::is_broken) || self.send.is_broken()
    }

    /// How many packets the back end was given and has not taken.
    pub(super) fn unread(&mut self) -> u32 {
        self.reclaim();
        SEND_BUFFERS - self.free.len() as u32
    }

    /// Takes back the buffers that were sent.
    fn reclaim(&mut self) {
        loop {
            match self.send.take_used() {
                Ok(Some(used)) => self.free.push(used.token),
                Err(InvalidUsed::TooLong { token, .. }) => self.free.push(token),
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// A free buffer; if there is none, the back end is asked to notify when it has sent one.
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

    #[inline]
    fn post(&mut self, n: u32) {
        let (address, bytes) = (self.places.receive(n), self.places.receive_bytes);
        // There is a descriptor for each buffer.
        let ring = &mut self.receive[(n / self.places.receive_buffers) as usize];
        let _posted = ring.post(&[Segment { address, bytes, is_writable: true }], n);
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
