//! Tests of the sender of AF_XDP frames; a simulated kernel empties the ring, and returns chunks in any
//! order.

use std::collections::VecDeque;
use std::os::unix::net::UnixStream;

use proptest::prelude::*;

use super::super::chunks::Chunks;
use super::super::ring::Ring;
use super::*;

const CHUNK_BYTES: usize = 2_048;
const CHUNKS: u32 = 16;

/// The simulated kernel of a sender.
struct Kernel {
    chunks: Arc<Chunks>,
    send: Consumer<2>,
    completed: Producer<1>,
    /// The chunks from which the kernel has sent, and which it has not returned.
    under_way: Vec<u64>,
}

fn pair(first: u32, most_bytes: usize, has_pieces: bool) -> (Sender, Kernel) {
    let (send, completed) = (Ring::fresh(CHUNKS, first), Ring::fresh(CHUNKS, first));
    let chunks = Chunks::new(CHUNK_BYTES as u32, 4, CHUNKS).unwrap();
    let (file, _peer) = UnixStream::pair().unwrap();
    let kernel = Kernel {
        chunks: Arc::clone(&chunks),
        send: Consumer::new(send.clone()),
        completed: Producer::new(completed.clone()),
        under_way: Vec::new(),
    };
    let rings = (Producer::new(send), Consumer::new(completed));
    let outgoing = Outgoing::new(chunks, CHUNKS);
    (Sender::new(Arc::new(file.into()), outgoing, rings, (most_bytes, has_pieces)), kernel)
}

impl Kernel {
    /// Sends the next frame; `None` if there is none.
    fn send(&mut self) -> Option<Vec<u8>> {
        let mut frame = Vec::new();
        loop {
            let [address, about] = self.send.pop()?;
            let [a, b, c, d, e, f, g, h] = about.to_ne_bytes();
            let [len, options] = [[a, b, c, d], [e, f, g, h]].map(u32::from_ne_bytes);
            assert!(!self.under_way.contains(&address), "{address} is under way");
            self.under_way.push(address);
            frame.extend(self.chunks.sent(address, len as usize));
            if options & libc::XDP_PKT_CONTD == 0 {
                self.send.release();
                return Some(frame);
            }
        }
    }

    /// Returns the chunk with this number among those that the kernel has not returned.
    fn complete(&mut self, n: usize) {
        let address = self.under_way.swap_remove(n);
        assert!(self.completed.push([address]));
        self.completed.publish();
    }
}

fn put(sender: &mut Sender, frame: &[u8], piece_bytes: usize) -> Option<i32> {
    let put = sender.put([0; VIRTIO_HEADER_BYTES], frame.len(), frame.chunks(piece_bytes));
    put.err().and_then(|error| error.raw_os_error())
}

#[test]
fn what_never_fits_and_what_does_not_fit_now_are_told_apart() {
    let (mut sender, mut kernel) = pair(0, 9_000, false);
    assert_eq!(put(&mut sender, &[7; CHUNK_BYTES + 1], 100), Some(libc::EMSGSIZE), "two pieces");
    for _ in 0..CHUNKS {
        assert_eq!(put(&mut sender, &[7; CHUNK_BYTES], 100), None);
    }
    assert_eq!(put(&mut sender, &[7; 60], 100), Some(libc::EAGAIN));
    sender.kick().unwrap();
    assert_eq!(kernel.send(), Some(vec![7; CHUNK_BYTES]));
    assert_eq!(put(&mut sender, &[7; 60], 100), Some(libc::EAGAIN), "not given back");
    kernel.complete(0);
    assert_eq!(put(&mut sender, &[7; 60], 100), None);
    let (mut sender, _) = pair(0, 9_000, true);
    assert_eq!(put(&mut sender, &[7; 9_001], 100), Some(libc::EMSGSIZE));
    assert_eq!((sender.allow(9_001), put(&mut sender, &[7; 9_001], 100)), (true, None));
}

proptest! {
    /// Whatever the order of calls, each frame that was accepted is sent once, unchanged and in order, and
    /// every chunk is returned.
    #[test]
    fn frames_leave_as_they_were_and_no_chunk_is_lost(
        first in any::<u32>(),
        steps in prop::collection::vec((0..4_u8, 1..9_000_usize, 1..3_000_usize), 0..300),
    ) {
        let (mut sender, mut kernel) = pair(first, 9_000, true);
        let mut waiting = VecDeque::new();
        for (step, bytes, other) in steps {
            match step {
                0 => {
                    let frame: Vec<u8> = (0..bytes).map(|at| (at * 7 + other) as u8).collect();
                    if put(&mut sender, &frame, other).is_none() {
                        waiting.push_back(frame);
                    }
                }
                1 => _ = sender.kick().unwrap(),
                2 => {
                    sender.kick().unwrap();
                    prop_assert_eq!(kernel.send(), waiting.pop_front());
                }
                _ if kernel.under_way.is_empty() => {}
                _ => kernel.complete(bytes % kernel.under_way.len()),
            }
        }
        sender.kick().unwrap();
        while let Some(frame) = kernel.send() {
            prop_assert_eq!(Some(frame), waiting.pop_front());
        }
        prop_assert!(waiting.is_empty());
        while !kernel.under_way.is_empty() {
            kernel.complete(0);
        }
        sender.reap();
        prop_assert_eq!(sender.outgoing.free(), CHUNKS as usize);
    }
}
