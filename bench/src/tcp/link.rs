//! The link: frames in buffers that go back where they came from, in two queues. The same for every
//! stack; one that can may hand over large sends where the link takes them.

use std::cell::RefCell;
use std::collections::VecDeque;

use rxo_frame::{ChecksumStatus, Frame, Gso, Instant};

/// Bytes of an IP packet at most.
pub(crate) const MTU: usize = 1_500;
/// An IP packet's room, in whole lines.
const BUFFER_BYTES: usize = 1_536;
/// Room for a large send.
const LARGE_BYTES: usize = 65_536;
/// Frames that a queue holds before it grows.
const QUEUE_FRAMES: usize = 1_024;

thread_local! {
    /// Buffers that nobody has: for packets, and for large sends. Of this thread alone, so that taking
    /// one and giving it back costs next to nothing: what is measured are the stacks.
    static FREE: RefCell<[Vec<Box<[u8]>>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// A stack's end of the link. Frames are IP packets; there is no link layer that would cost one
/// stack more than another.
pub(crate) struct Port {
    /// What has arrived and is not taken yet.
    pub(crate) received: VecDeque<Frame<Buffer>>,
    /// What is sent and not fetched yet.
    pub(crate) sent: VecDeque<Sent>,
    /// Whether it takes large sends as they are, as a link between guests does.
    pub(crate) takes_large: bool,
    /// What is known of a checksum on arrival.
    checksum: ChecksumStatus,
}

impl Port {
    /// With `checksums` the stack verifies them, without a device has.
    pub(crate) fn new(checksums: bool, takes_large: bool) -> Self {
        let (received, sent) =
            (VecDeque::with_capacity(QUEUE_FRAMES), VecDeque::with_capacity(QUEUE_FRAMES));
        let checksum = if checksums { ChecksumStatus::Unknown } else { ChecksumStatus::Verified };
        Self { received, sent, takes_large, checksum }
    }

    /// A frame arrives.
    pub(crate) fn arrive(&mut self, buffer: Buffer, now: Instant) {
        self.arrive_sent(Sent { buffer, gso: None }, now);
    }

    /// What was sent at the other end arrives.
    pub(crate) fn arrive_sent(&mut self, sent: Sent, now: Instant) {
        let Sent { buffer, gso } = sent;
        let frame = Frame { checksum: self.checksum, gso, ..Frame::new(buffer, now) };
        self.received.push_back(frame);
    }

    /// Sends a frame of `bytes`, which `write` fills.
    #[inline]
    pub(crate) fn send<R>(&mut self, bytes: usize, write: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut buffer = Buffer::take(bytes);
        let result = write(buffer.bytes_mut());
        self.sent.push_back(Sent { buffer, gso: None });
        result
    }

    /// Sends several segments in one.
    pub(crate) fn send_large(&mut self, bytes: usize, gso: Gso, write: impl FnOnce(&mut [u8])) {
        assert!(self.takes_large, "a link of {MTU} bytes");
        let mut buffer = Buffer::take_large(bytes);
        write(buffer.bytes_mut());
        self.sent.push_back(Sent { buffer, gso: Some(gso) });
    }
}

/// A frame that was sent.
pub(crate) struct Sent {
    pub(crate) buffer: Buffer,
    /// How it is to be cut, if it is several segments in one.
    pub(crate) gso: Option<Gso>,
}

/// A frame's bytes. Nothing where a stack has taken the buffer out of its place.
#[derive(Default)]
pub(crate) struct Buffer {
    memory: Option<Box<[u8]>>,
    /// No more than there is room for.
    length: usize,
}

impl Buffer {
    /// A free one, for `length` bytes of a packet.
    ///
    /// # Panics
    /// When they are more than a frame has.
    #[inline]
    pub(crate) fn take(length: usize) -> Self {
        assert!(length <= BUFFER_BYTES, "{length} bytes in a frame");
        let free = FREE.with_borrow_mut(|[packets, _]| packets.pop());
        Self { memory: Some(free.unwrap_or_else(|| vec![0; BUFFER_BYTES].into())), length }
    }

    /// A free one for a large send.
    ///
    /// # Panics
    /// When they are more than an IP packet has.
    pub(crate) fn take_large(length: usize) -> Self {
        assert!(length < LARGE_BYTES, "{length} bytes in a large send");
        let free = FREE.with_borrow_mut(|[_, large]| large.pop());
        Self { memory: Some(free.unwrap_or_else(|| vec![0; LARGE_BYTES].into())), length }
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let length = self.length;
        self.memory.as_mut().map_or(&mut [], |memory| &mut memory[..length])
    }
}

impl AsRef<[u8]> for Buffer {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], |memory| &memory[..self.length])
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            FREE.with_borrow_mut(|[packets, large]| {
                let free = if memory.len() == BUFFER_BYTES { packets } else { large };
                free.push(memory);
            });
        }
    }
}
