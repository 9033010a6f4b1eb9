//! The deliveries of an engine that the C program has not released: headers, pieces and frames, in memory that is
//! allocated once.
//!
//! The engine drops deliveries when its sink returns, but a C program takes them one by one. Headers are copied (at
//! most 192 bytes); payload stays in the caller's buffers. The memory of deliveries that the caller has taken does not
//! move until they are released; after that, the memory of the remaining deliveries may move.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::iter::repeat_n;

use libc::iovec;
use rxo_coalesce::{Deliveries, Delivery, MAX_HEADER_BYTES, Taken};
use rxo_frame::{Frame, Gather, Offload};
use rxo_vnet::{VIRTIO_HEADER_BYTES, VNET_HEADER_BYTES, VnetHeader};

use super::buffer::Buffer;

/// A frame as it was pushed to the engine.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RxoFrame {
    /// The bytes of the frame.
    pub data: *const u8,
    /// The length of the frame in bytes.
    pub len: usize,
    /// The time at which the frame was pushed, in nanoseconds.
    pub arrived_ns: u64,
    /// The cookie that was pushed with the frame.
    pub cookie: *mut c_void,
}

impl RxoFrame {
    #[inline]
    fn of(frame: &Frame<Buffer>) -> Self {
        let (bytes, cookie) = (frame.bytes(), frame.bytes.cookie);
        let arrived_ns = frame.arrived_at.as_nanos();
        Self { data: bytes.as_ptr(), len: bytes.len(), arrived_ns, cookie }
    }
}

/// One delivery: a single frame, or several frames coalesced into one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RxoDelivery {
    /// The pieces, for `writev`: `iov[0]` is the virtio header, `iov[1]` begins with the packet's headers.
    pub iov: *const iovec,
    /// The number of pieces in `iov`, at least 2.
    pub niov: usize,
    /// The number of bytes of all pieces, without the virtio header.
    pub bytes: usize,
    /// The original frames, bit for bit, in order.
    pub frames: *const RxoFrame,
    /// The number of original frames in `frames`.
    pub nframes: usize,
    /// Payload bytes of each segment except the last, which may be shorter; 0 if this is not an aggregate.
    pub gso_size: u16,
    /// Length of the merged headers in `iov[1]`, equal to that of each frame; 0 if this is not an aggregate.
    pub header_bytes: u16,
}

/// Storage for the virtio header and the merged headers of a delivery.
#[derive(Clone, Copy)]
struct Head([u8; VIRTIO_HEADER_BYTES + MAX_HEADER_BYTES]);

impl Head {
    const EMPTY: Self = Self([0; VIRTIO_HEADER_BYTES + MAX_HEADER_BYTES]);
}

/// A delivery that the caller has not taken: the number of its entries in `iov` and `frames`, and its sizes.
struct Ready {
    pieces: usize,
    frames: usize,
    bytes: usize,
    gso_size: u16,
    header_bytes: u16,
}

/// A position between two deliveries, as indices into `iov` and `frames`.
#[derive(Clone, Copy, Default)]
struct Place {
    piece: usize,
    frame: usize,
}

/// The deliveries of an engine that the caller has not released.
pub(super) struct Hand {
    ready: VecDeque<Ready>,
    /// The headers of deliveries, one per possible delivery. They are cells, because pieces point to some of them while
    /// others are written.
    heads: Box<[Cell<Head>]>,
    next_head: usize,
    iov: Box<[iovec]>,
    frames: Box<[RxoFrame]>,
    /// The position after all deliveries.
    end: Place,
    /// The position after the deliveries that the caller has taken.
    seen: Place,
    /// The position after the deliveries that the caller has released.
    released: Place,
    virtio_bytes: usize,
    /// The number of frames that were stored so far, including released ones.
    pub(super) collected: u64,
    /// `true` if the engine delivered more frames than were pushed, so that there was no space for them.
    pub(super) is_overfull: bool,
}

impl Hand {
    /// Creates storage for deliveries of at most `most_frames` frames. Nothing is allocated later, so pieces never
    /// move. `is_long` selects the virtio header of 12 bytes.
    pub(super) fn new(most_frames: usize, is_long: bool) -> Self {
        // Entries of released frames are reused once they are as many as the others.
        let places = 2 * most_frames;
        Self {
            ready: VecDeque::with_capacity(most_frames),
            heads: repeat_n(Head::EMPTY, most_frames).map(Cell::new).collect(),
            next_head: 0,
            // A delivery has a virtio header, a merged header, and one piece per frame.
            iov: repeat_n(piece(&[]), 3 * places).collect(),
            frames: repeat_n(RxoFrame::of(&Frame::default()), places).collect(),
            end: Place::default(),
            seen: Place::default(),
            released: Place::default(),
            virtio_bytes: if is_long { VIRTIO_HEADER_BYTES } else { VNET_HEADER_BYTES },
            collected: 0,
            is_overfull: false,
        }
    }

    /// The number of stored frames that were not released.
    pub(super) fn frames(&self) -> usize {
        self.end.frame - self.released.frame
    }

    /// Moves all deliveries out of the engine into this storage.
    pub(super) fn take(&mut self, mut deliveries: Deliveries<'_, Buffer>) {
        while let Some(taken) = deliveries.take_next() {
            match self.has_room(taken.view().frame_count()) {
                true => self.take_one(taken),
                false => self.is_overfull = true,
            }
        }
    }

    /// Returns `true` if a delivery of `frames` frames fits, and no header is overwritten.
    fn has_room(&self, frames: usize) -> bool {
        self.frames() + frames <= self.heads.len()
            && self.end.frame + frames <= self.frames.len()
            && self.end.piece + frames + 2 <= self.iov.len()
    }

    fn take_one(&mut self, taken: Taken<'_, Buffer>) {
        let view = taken.view();
        let (bytes, count) = (view.byte_len(), view.frame_count());
        let (header, gso_size) = match view {
            Delivery::Aggregate(aggregate) => (aggregate.header(), aggregate.gso_size()),
            Delivery::Frame(_) | Delivery::Acks(_) => (&[][..], 0),
        };
        let (virtio, headers) = self.put_head(view.offload(), header);
        let (start, all_pieces) = (self.end, self.iov.len());
        let mut places = self.iov[start.piece..].iter_mut();
        let mut put = |piece| {
            if let Some(place) = places.next() {
                *place = piece;
            }
        };
        put(virtio);
        view.for_each_slice(|bytes| put(piece(bytes)));
        self.end = Place { piece: all_pieces - places.len(), frame: start.frame + count };
        if !header.is_empty() {
            // The first piece of an aggregate is its header, which the engine overwrites later.
            self.iov[start.piece + 1] = headers;
        }
        let header_bytes = header.len() as u16;
        // Borrowed, because nothing has to be left in place of a taken frame.
        let mut frames = taken.into_frames();
        for place in &mut self.frames[start.frame..self.end.frame] {
            let Some(frame) = frames.next_ref() else { break };
            *place = RxoFrame::of(frame);
        }
        self.collected += count as u64;
        let pieces = self.end.piece - start.piece;
        self.ready.push_back(Ready { pieces, frames: count, bytes, gso_size, header_bytes });
    }

    /// Copies the headers of a delivery. Returns them as two pieces: the virtio header and the merged header.
    fn put_head(&mut self, offload: Offload, header: &[u8]) -> (iovec, iovec) {
        let mut head = Head::EMPTY;
        let virtio = VnetHeader::for_packet(offload, 0).to_virtio_bytes(1);
        let (start, rest) = head.0.split_at_mut(self.virtio_bytes);
        start.copy_from_slice(&virtio[..self.virtio_bytes]);
        rest[..header.len()].copy_from_slice(header);
        let place = &self.heads[self.next_head];
        place.set(head);
        self.next_head = (self.next_head + 1) % self.heads.len();
        let at = place.as_ptr().cast::<u8>();
        let piece = |from, iov_len| iovec { iov_base: at.wrapping_add(from).cast(), iov_len };
        (piece(0, self.virtio_bytes), piece(self.virtio_bytes, header.len()))
    }

    /// Returns the next delivery that the caller has not taken; `None` if there is none.
    pub(super) fn first(&self) -> Option<RxoDelivery> {
        let ready = self.ready.front()?;
        let Place { piece, frame } = self.seen;
        Some(RxoDelivery {
            iov: self.iov[piece..piece + ready.pieces].as_ptr(),
            niov: ready.pieces,
            bytes: ready.bytes,
            frames: self.frames[frame..frame + ready.frames].as_ptr(),
            nframes: ready.frames,
            gso_size: ready.gso_size,
            header_bytes: ready.header_bytes,
        })
    }

    /// Takes the delivery that [`Hand::first`] returns.
    pub(super) fn take_first(&mut self) {
        if let Some(Ready { pieces, frames, .. }) = self.ready.pop_front() {
            self.seen.piece += pieces;
            self.seen.frame += frames;
        }
    }

    /// Releases the deliveries that the caller has taken, and calls `give_back` with the cookie of each of their frames.
    /// The rest moves to the front once it is no larger than the released part, so that a frame moves once on average.
    ///
    /// # Safety
    /// `give_back` is the program's function for the cookies that it gave.
    pub(super) unsafe fn release(&mut self, give_back: Option<unsafe extern "C" fn(*mut c_void)>) {
        if let Some(give_back) = give_back {
            for frame in &self.frames[self.released.frame..self.seen.frame] {
                // SAFETY: the caller's promise.
                unsafe { give_back(frame.cookie) };
            }
        }
        self.released = self.seen;
        let Place { piece, frame } = self.released;
        if frame >= self.frames() {
            self.frames.copy_within(frame..self.end.frame, 0);
            self.iov.copy_within(piece..self.end.piece, 0);
            self.end = Place { piece: self.end.piece - piece, frame: self.end.frame - frame };
            (self.seen, self.released) = (Place::default(), Place::default());
        }
        if self.end.frame == 0 {
            // The heads used last are still in the CPU cache.
            self.next_head = 0;
        }
    }
}

/// Returns the C description (`iovec`) of the piece `bytes`.
fn piece(bytes: &[u8]) -> iovec {
    iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}
