//! What was delivered and not released: headers, pieces and frames, in memory allocated once.
//!
//! The engine forgets deliveries when its sink returns, but a program in C takes them one by one. Headers
//! are copied (192 bytes at most); payload stays in the caller's buffers.

use std::ffi::c_void;
use std::ops::Range;

use libc::iovec;
use rxo_coalesce::{Deliveries, Delivery, MAX_HEADER_BYTES, Taken};
use rxo_frame::Gather;
use rxo_vnet::{VIRTIO_HEADER_BYTES, VNET_HEADER_BYTES, VnetHeader};

use super::buffer::Buffer;

/// A frame as it was pushed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RxoFrame {
    /// Its bytes.
    pub data: *const u8,
    /// Their number.
    pub len: usize,
    /// When it was pushed.
    pub arrived_ns: u64,
    /// What was pushed with it.
    pub cookie: *mut c_void,
}

/// One delivery: a frame as it came, or several coalesced into one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RxoDelivery {
    /// Its pieces, for `writev`: `iov[0]` is the virtio header, `iov[1]` begins with the headers.
    pub iov: *const iovec,
    /// Number of pieces, at least 2.
    pub niov: usize,
    /// Bytes of all pieces without the virtio header.
    pub bytes: usize,
    /// The frames that it was made of, bit for bit, in order.
    pub frames: *const RxoFrame,
    /// Number of these frames.
    pub nframes: usize,
    /// Payload bytes of each segment but the last, which may be shorter; 0 if it is not an aggregate.
    pub gso_size: u16,
    /// Bytes of the merged headers in `iov[1]`, as many as each frame's own; 0 if it is not an aggregate.
    pub header_bytes: u16,
}

/// The virtio header and the merged headers of a delivery.
struct Head([u8; VIRTIO_HEADER_BYTES + MAX_HEADER_BYTES]);

/// Where the parts of a delivery are.
struct Ready {
    iov: Range<usize>,
    frames: Range<usize>,
    bytes: usize,
    gso_size: u16,
    header_bytes: u16,
}

/// See the module.
pub(super) struct Hand {
    ready: Vec<Ready>,
    heads: Vec<Head>,
    iov: Vec<iovec>,
    frames: Vec<RxoFrame>,
    /// Deliveries that the caller has seen.
    shown: usize,
    /// Frames that the caller has been given back.
    released: usize,
    virtio_bytes: usize,
    /// Frames that ever came here.
    pub(super) collected: u64,
}

impl Hand {
    /// Room for deliveries of so many frames. Nothing is allocated later, so pieces never move.
    pub(super) fn new(most_frames: usize, is_long: bool) -> Self {
        Self {
            ready: Vec::with_capacity(most_frames),
            heads: Vec::with_capacity(most_frames),
            // A delivery has a virtio header, a merged header, and a piece for each frame.
            iov: Vec::with_capacity(3 * most_frames),
            frames: Vec::with_capacity(most_frames),
            shown: 0,
            released: 0,
            virtio_bytes: if is_long { VIRTIO_HEADER_BYTES } else { VNET_HEADER_BYTES },
            collected: 0,
        }
    }

    /// Frames that were not released.
    pub(super) fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Takes all deliveries out of the engine.
    pub(super) fn take(&mut self, mut deliveries: Deliveries<'_, Buffer>) {
        while let Some(taken) = deliveries.take_next() {
            self.take_one(taken);
        }
    }

    fn take_one(&mut self, taken: Taken<'_, Buffer>) {
        let view = taken.view();
        let (first_iov, first_frame) = (self.iov.len(), self.frames.len());
        let bytes = view.byte_len();
        let merged = match view {
            Delivery::Aggregate(aggregate) => Some(aggregate),
            Delivery::Frame(_) | Delivery::Acks(_) => None,
        };
        let header = merged.map_or(&[][..], |aggregate| aggregate.header());
        let gso_size = merged.map_or(0, |aggregate| aggregate.gso_size());
        let mut head = Head([0; VIRTIO_HEADER_BYTES + MAX_HEADER_BYTES]);
        let virtio = VnetHeader::for_packet(view.offload(), 0).to_virtio_bytes(1);
        let (start, rest) = head.0.split_at_mut(self.virtio_bytes);
        start.copy_from_slice(&virtio[..self.virtio_bytes]);
        rest[..header.len()].copy_from_slice(header);
        // Its address is that in `heads`, which never grows beyond what was allocated.
        debug_assert!(self.heads.len() < self.heads.capacity());
        self.heads.push(head);
        let head = self.heads.last().map_or(&[][..], |head| &head.0[..]);
        let (virtio, rest) = head.split_at(self.virtio_bytes.min(head.len()));
        self.iov.push(piece(virtio));
        // The first piece of an aggregate is its header, which the engine forgets.
        let mut copied = merged.is_some().then_some(&rest[..header.len()]);
        let iov = &mut self.iov;
        view.for_each_slice(|bytes| iov.push(piece(copied.take().unwrap_or(bytes))));
        let header_bytes = header.len() as u16;
        for frame in taken.into_frames() {
            self.frames.push(RxoFrame {
                data: frame.bytes().as_ptr(),
                len: frame.bytes().len(),
                arrived_ns: frame.arrived_at.as_nanos(),
                cookie: frame.bytes.cookie,
            });
        }
        self.collected += (self.frames.len() - first_frame) as u64;
        let (iov, frames) = (first_iov..self.iov.len(), first_frame..self.frames.len());
        self.ready.push(Ready { iov, frames, bytes, gso_size, header_bytes });
    }

    /// The next delivery that the caller has not seen.
    pub(super) fn next(&mut self) -> Option<RxoDelivery> {
        let ready = self.ready.get(self.shown)?;
        self.shown += 1;
        Some(RxoDelivery {
            iov: self.iov[ready.iov.clone()].as_ptr(),
            niov: ready.iov.len(),
            bytes: ready.bytes,
            frames: self.frames[ready.frames.clone()].as_ptr(),
            nframes: ready.frames.len(),
            gso_size: ready.gso_size,
            header_bytes: ready.header_bytes,
        })
    }

    /// The frames of all deliveries that the caller has seen and not been given back.
    pub(super) fn release(&self) -> &[RxoFrame] {
        &self.frames[self.released..self.seen()]
    }

    /// Forgets what was released; the memory is used again once the caller has seen everything.
    pub(super) fn forget_released(&mut self) {
        self.released = self.seen();
        if self.shown == self.ready.len() {
            self.ready.clear();
            self.heads.clear();
            self.iov.clear();
            self.frames.clear();
            (self.shown, self.released) = (0, 0);
        }
    }

    /// Frames of the deliveries that the caller has seen.
    fn seen(&self) -> usize {
        self.shown.checked_sub(1).and_then(|last| self.ready.get(last)).map_or(0, |r| r.frames.end)
    }
}

/// `bytes` as C names them.
fn piece(bytes: &[u8]) -> iovec {
    iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}
