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
use std::ptr::null_mut;

use libc::iovec;
use rxo_coalesce::{Aggregate, Deliveries, Delivery, MAX_HEADER_BYTES};
use rxo_frame::{Gather, Offload};
use rxo_vnet::{VIRTIO_HEADER_BYTES, VNET_HEADER_BYTES, VnetHeader};

use super::buffer::Buffer;

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
    /// The cookies of the original frames, in order. The frames themselves are as they were pushed.
    pub cookies: *const *mut c_void,
    /// The number of original frames.
    pub nframes: usize,
    /// Payload bytes of each segment except the last, which may be shorter; 0 if this is not an aggregate.
    pub gso_size: u16,
    /// Length of the merged headers in `iov[1]`, equal to that of each frame; 0 if this is not an aggregate.
    pub header_bytes: u16,
}

/// Storage for the virtio header and the merged headers of a delivery.
type Head = [u8; VIRTIO_HEADER_BYTES + MAX_HEADER_BYTES];

/// A delivery that the caller has not taken: the number of its entries in `iov` and `cookies`, and its sizes.
struct Ready {
    pieces: usize,
    frames: usize,
    bytes: usize,
    gso_size: u16,
    header_bytes: u16,
}

/// A position between two deliveries, as indices into `iov` and `cookies`.
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
    cookies: Box<[*mut c_void]>,
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
            heads: (0..most_frames).map(|_| Cell::new([0; _])).collect(),
            next_head: 0,
            // A delivery has a virtio header, a merged header, and one piece per frame.
            iov: repeat_n(piece(&[]), 3 * places).collect(),
            cookies: repeat_n(null_mut(), places).collect(),
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

    /// Stores all deliveries, whose frames the engine forgets afterwards.
    pub(super) fn take(&mut self, deliveries: &Deliveries<'_, Buffer>) {
        deliveries.iter().for_each(|delivery| self.take_one(delivery));
    }

    /// Returns `true` if a delivery of `frames` frames fits, and no header is overwritten.
    fn has_room(&self, frames: usize) -> bool {
        self.frames() + frames <= self.heads.len()
            && self.end.frame + frames <= self.cookies.len()
            && self.end.piece + frames + 2 <= self.iov.len()
    }

    fn take_one(&mut self, delivery: Delivery<'_, Buffer>) {
        let (bytes, frames) = (delivery.byte_len(), delivery.frame_count());
        if !self.has_room(frames) {
            self.is_overfull = true;
            return;
        }
        let (header, gso_size) = match &delivery {
            Delivery::Aggregate(aggregate) => (aggregate.header(), aggregate.gso_size()),
            Delivery::Frame(_) | Delivery::Acks(_) => (&[][..], 0),
        };
        let (virtio, headers) = self.put_head(delivery.offload(), header);
        let (iov, cookies) = (&mut self.iov[self.end.piece..], &mut self.cookies[self.end.frame..]);
        let (first, iov) = iov[..2 + frames].split_at_mut(2);
        first[0] = virtio;
        let pieces = match delivery {
            Delivery::Aggregate(aggregate) => {
                first[1] = headers;
                put_segments(&aggregate, iov, cookies);
                2 + frames
            }
            Delivery::Frame(_) | Delivery::Acks(_) => {
                delivery.for_each_slice(|packet| first[1] = piece(packet));
                for (cookie, frame) in cookies.iter_mut().zip(delivery.frames()) {
                    *cookie = frame.bytes.cookie;
                }
                2
            }
        };
        self.end.piece += pieces;
        self.end.frame += frames;
        self.collected += frames as u64;
        let header_bytes = header.len() as u16;
        self.ready.push_back(Ready { pieces, frames, bytes, gso_size, header_bytes });
    }

    /// Copies the headers of a delivery. Returns them as two pieces: the virtio header and the merged header.
    fn put_head(&mut self, offload: Offload, header: &[u8]) -> (iovec, iovec) {
        let virtio = VnetHeader::for_packet(offload, 0).to_virtio_bytes(1);
        let header = &header[..header.len().min(MAX_HEADER_BYTES)];
        let at = self.heads[self.next_head].as_ptr().cast::<u8>();
        self.next_head = (self.next_head + 1) % self.heads.len();
        let behind = at.wrapping_add(self.virtio_bytes);
        // SAFETY: a head has room for the virtio header of 12 bytes, and behind it for the longest merged header. No
        // piece points to this head, because there are as many as deliveries.
        unsafe {
            at.copy_from_nonoverlapping(virtio.as_ptr(), virtio.len());
            behind.copy_from_nonoverlapping(header.as_ptr(), header.len());
        }
        let piece = |at: *mut u8, iov_len| iovec { iov_base: at.cast(), iov_len };
        (piece(at, self.virtio_bytes), piece(behind, header.len()))
    }

    /// Returns the next delivery that the caller has not taken; `None` if there is none.
    pub(super) fn first(&self) -> Option<RxoDelivery> {
        let ready = self.ready.front()?;
        let Place { piece, frame } = self.seen;
        Some(RxoDelivery {
            iov: self.iov.as_ptr().wrapping_add(piece),
            niov: ready.pieces,
            bytes: ready.bytes,
            cookies: self.cookies.as_ptr().wrapping_add(frame),
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
            for cookie in &self.cookies[self.released.frame..self.seen.frame] {
                // SAFETY: the caller's promise.
                unsafe { give_back(*cookie) };
            }
        }
        self.released = self.seen;
        let Place { piece, frame } = self.released;
        if frame >= self.frames() {
            self.cookies.copy_within(frame..self.end.frame, 0);
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

/// Stores the payload and the cookie of each segment. Not inlined, because its loop needs all registers.
#[inline(never)]
fn put_segments(aggregate: &Aggregate<'_, Buffer>, iov: &mut [iovec], cookies: &mut [*mut c_void]) {
    assert!(cookies.len() >= iov.len());
    let mut places = iov.iter_mut();
    // A pointer, because a second iterator would be a second comparison for each segment.
    let mut cookie = cookies.as_mut_ptr();
    aggregate.for_each_segment(|frame, payload| {
        if let Some(place) = places.next() {
            *place = piece(payload);
            // SAFETY: there are at least as many cookies as places.
            unsafe {
                cookie.write(frame.bytes.cookie);
                cookie = cookie.add(1);
            }
        }
    });
}

/// Returns the C description (`iovec`) of the piece `bytes`.
fn piece(bytes: &[u8]) -> iovec {
    iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}
